/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of `.rules` files; docs/rules.md explains it. */
%define api.pure full
%define api.prefix {rules_yy}
%define parse.error detailed
%locations
%define api.location.type {span}
%expect 0
%param { void *scanner }
%parse-param { struct rules_parser *p }
%initial-action { @$.first = @$.last = 0; }

%code requires {
#include "grammar/rules/ast.h"
}
%code {
#include <string.h>

#define YYLLOC_DEFAULT(current, rhs, n)                                  \
    do {                                                                 \
        (current).first = (n) ? YYRHSLOC(rhs, 1).first : YYRHSLOC(rhs, 0).last; \
        (current).last = (n) ? YYRHSLOC(rhs, n).last : YYRHSLOC(rhs, 0).last;   \
    } while (0)
int rules_yylex(YYSTYPE *value, span *where, void *scanner);
static void rules_yyerror(span *where, void *scanner, rules_parser *p, const char *text) {
    (void)scanner;
    const bool deep = strcmp(text, "memory exhausted") == 0; /* bison reports this only at
                                                              * YYMAXDEPTH */
    rules_fault(p, *where, "%s", deep ? "nested too deeply" : text);
}
#define YYMALLOC(size) hlo_arena_alloc(p->owner->arena, size)
#define YYFREE(memory) ((void)(memory))
#define NEW(type) rules_new(p, sizeof(type))
#define NODE(kind, at) rules_node(p, kind, (at).first, (at).last)
/* Appends an item to a list, whose first item points to the last. */
#define APPEND(type, list, item)                                    \
    do {                                                            \
        type *first = (list), *added = (item);                      \
        if (first)                                                  \
            (first->last ? first->last : first)->next = added;      \
        else                                                        \
            (list) = first = added;                                 \
        first->last = added;                                        \
    } while (0)
}

%union {
    double number;
    bool flag;
    span span;
    node *node;
    attr_node *attr;
    ints *ints;
    guard_node *guard;
    action_node *action;
    set_node *set;
    root_node *root;
}

%token T_ARROW "=>" T_TO "->" T_ADD "+=" T_ALSO "also?" T_CHAIN1 "chain+" T_LET "let"
%token T_PHASE "phase" T_MEASURE "measure" T_RULE "rule" T_FOR "for" T_WHERE "where" T_NOT "not"
%token T_ELSE "else" T_AT "at" T_CALL "call" T_WITH "with" T_OPERAND "operand" T_LIKE "like"
%token T_FROM "from" T_REMARK "remark" T_CHAIN "chain" T_SPLAT "splat" T_CONSTANT "constant"
%token T_NONE "none" T_ANY "_" T_REST "..." T_UNKNOWN "an unknown character"
%token <number> T_NUMBER "a number"
%token <span> T_NAME "a name" T_VAR "a variable" T_EXAMPLE "an example"

%type <span> subject at example
%type <flag> negate
%type <node> pattern single postfix primary args arglist params vars
%type <attr> attrs attrlist attr
%type <ints> intlist someints
%type <guard> guards guard
%type <root> roots
%type <action> actions action
%type <set> sets set

%%

file: %empty | file statement;

statement: let | phase | rule;

let: "let" T_NAME '(' params ')' '=' pattern {
        rules_let(p, $2, $4, $7);
    };

params: %empty { $$ = NULL; } | vars { $$ = $1; };

vars: T_VAR { $$ = NODE(NODE_VAR, @1); $$->name = $1; }
    | vars ',' T_VAR {
        node *v = NODE(NODE_VAR, @3);
        v->name = $3;
        $$ = $1;
        APPEND(node, $$, v);
    };

phase: "phase" T_NAME "measure" T_NAME { rules_phase(p, $2, $4); };

rule: "rule" T_NAME subject roots guards "=>" actions example {
        rules_rule(p, $2, $3, $4, $5, $7, $8);
    };

subject: %empty { $$ = (span){0}; } | "for" T_VAR { $$ = $2; };

example: %empty { $$ = (span){0}; } | T_EXAMPLE { $$ = $1; };

roots: pattern { $$ = NEW(root_node); $$->pattern = $1; }
    | roots "also?" pattern {
        root_node *r = NEW(root_node);
        r->optional = true;
        r->pattern = $3;
        $$ = $1;
        APPEND(root_node, $$, r);
    };

guards: %empty { $$ = NULL; } | guards guard { $$ = $1; APPEND(guard_node, $$, $2); };

guard: "where" negate T_NAME '(' args ')' {
        $$ = NEW(guard_node);
        $$->negate = $2;
        $$->call = NODE(NODE_APPLY, @3);
        $$->call->name = $3;
        $$->call->args = $5;
    }
    | "where" negate T_NAME '(' args ')' "else" T_NAME at {
        $$ = NEW(guard_node);
        $$->negate = $2;
        $$->call = NODE(NODE_APPLY, @3);
        $$->call->name = $3;
        $$->call->args = $5;
        $$->reason = $8;
        $$->at = $9;
    };

negate: %empty { $$ = false; } | "not" { $$ = true; };
at: %empty { $$ = (span){0}; } | "at" T_VAR { $$ = $2; };

actions: action { $$ = $1; } | actions ';' action { $$ = $1; APPEND(action_node, $$, $3); };

action: postfix { $$ = NEW(action_node); $$->kind = HLO_ACTION_REPLACE; $$->value = $1; }
    | T_VAR "->" postfix {
        $$ = NEW(action_node);
        $$->kind = HLO_ACTION_REPLACE;
        $$->target = $1;
        $$->value = $3;
    }
    | T_VAR '=' postfix {
        $$ = NEW(action_node);
        $$->kind = HLO_ACTION_LET;
        $$->target = $1;
        $$->value = $3;
    }
    | T_VAR "with" "operand" T_VAR '=' postfix {
        $$ = NEW(action_node);
        $$->kind = HLO_ACTION_OPERAND;
        $$->target = $1;
        $$->operand = $4;
        $$->value = $6;
    }
    | "call" T_VAR "with" sets {
        $$ = NEW(action_node);
        $$->kind = HLO_ACTION_CALL;
        $$->operand = $2;
        $$->sets = $4;
    }
    | T_VAR '=' "call" T_VAR "with" sets {
        $$ = NEW(action_node);
        $$->kind = HLO_ACTION_CALL;
        $$->target = $1;
        $$->operand = $4;
        $$->sets = $6;
    }
    | "remark" T_NAME at {
        $$ = NEW(action_node);
        $$->kind = HLO_ACTION_REMARK;
        $$->reason = $2;
        $$->operand = $3;
    };

sets: set { $$ = $1; } | sets ',' set { $$ = $1; APPEND(set_node, $$, $3); };

set: T_NAME '=' postfix { $$ = NEW(set_node); $$->field = $1; $$->value = $3; }
    | T_NAME "+=" T_NAME {
        $$ = NEW(set_node);
        $$->field = $1;
        $$->add = true;
        $$->value = NODE(NODE_WORD, @3);
        $$->value->name = $3;
    };

pattern: single { $$ = $1; }
    | pattern '|' single {
        if ($1->kind == NODE_ALT && !$1->bind.last && !$1->shape.last) {
            $$ = $1;
        } else {
            $$ = NODE(NODE_ALT, @$);
            $$->args = $1;
        }
        APPEND(node, $$->args, $3);
    };

single: postfix { $$ = $1; }
    | T_VAR '=' postfix {
        $$ = $3;
        if ($$->bind.last || $$->kind == NODE_VAR || $$->kind == NODE_RESULT)
            rules_fault(p, @1, "the value already has a name");
        $$->bind = $1;
    }
    | single "with" T_VAR '=' postfix {
        $$ = NODE(NODE_DEFINE, @$);
        $$->name = $3;
        $$->args = $1;
        APPEND(node, $$->args, $5);
    };

postfix: primary { $$ = $1; }
    | primary ':' T_NAME { $$ = $1; $$->shape = $3; }
    | primary "like" T_VAR { $$ = $1; $$->shape = $3; $$->like = true; };

primary: T_VAR { $$ = NODE(NODE_VAR, @1); $$->name = $1; }
    | T_VAR '.' T_NAME { $$ = NODE(NODE_RESULT, @$); $$->name = $1; $$->field = $3; }
    | "_" { $$ = NODE(NODE_ANY, @1); }
    | "none" { $$ = NODE(NODE_NONE, @1); }
    | T_NUMBER { $$ = NODE(NODE_NUMBER, @1); $$->number = $1; }
    | T_NAME { $$ = NODE(NODE_WORD, @1); $$->name = $1; }
    | T_NAME '(' args ')' attrs {
        $$ = NODE(NODE_APPLY, @$);
        $$->name = $1;
        $$->args = $3;
        $$->attrs = $5;
    }
    | "constant" '(' T_NUMBER ')' { $$ = NODE(NODE_CONSTANT, @$); $$->number = $3; }
    | "chain" '(' pattern ')' { $$ = NODE(NODE_CHAIN, @$); $$->args = $3; }
    | "chain+" '(' pattern ')' { $$ = NODE(NODE_CHAIN1, @$); $$->args = $3; }
    | "splat" '(' pattern ')' { $$ = NODE(NODE_SPLAT, @$); $$->args = $3; }
    | '(' pattern ')' {
        $$ = $2;
        if ($2->bind.last || $2->kind == NODE_VAR || $2->kind == NODE_RESULT) {
            $$ = NODE(NODE_ALT, @$);
            $$->args = $2;
        }
    };

args: %empty { $$ = NULL; }
    | "..." { $$ = NODE(NODE_REST, @1); }
    | arglist { $$ = $1; }
    | arglist ',' "..." { $$ = $1; APPEND(node, $$, NODE(NODE_REST, @3)); }
    | "..." ',' pattern ',' "..." {
        $$ = NODE(NODE_REST, @1);
        APPEND(node, $$, $3);
        APPEND(node, $$, NODE(NODE_REST, @5));
    };

arglist: pattern { $$ = $1; } | arglist ',' pattern { $$ = $1; APPEND(node, $$, $3); };

attrs: %empty { $$ = NULL; } | '{' attrlist '}' { $$ = $2; };

attrlist: attr { $$ = $1; } | attrlist ',' attr { $$ = $1; APPEND(attr_node, $$, $3); };

attr: T_NAME '=' T_NUMBER {
        $$ = NEW(attr_node);
        $$->name = $1;
        $$->kind = HLO_RULE_INT;
        $$->number = $3;
    }
    | T_NAME '=' '{' someints '}' {
        $$ = NEW(attr_node);
        $$->name = $1;
        $$->kind = HLO_RULE_INTS;
        $$->ints = $4;
    }
    | T_NAME '=' T_NAME { $$ = NEW(attr_node); $$->name = $1; $$->kind = HLO_RULE_WORD; $$->word = $3; }
    | T_NAME '=' T_VAR { $$ = NEW(attr_node); $$->name = $1; $$->kind = HLO_RULE_SLOT; $$->word = $3; }
    | "from" T_VAR { $$ = NEW(attr_node); $$->kind = HLO_RULE_FROM; $$->word = $2; };

someints: %empty { $$ = NULL; } | intlist { $$ = $1; };

intlist: T_NUMBER { $$ = NEW(ints); $$->value = $1; }
    | intlist ',' T_NUMBER {
        ints *i = NEW(ints);
        i->value = $3;
        $$ = $1;
        APPEND(ints, $$, i);
    };

%%
