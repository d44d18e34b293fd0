/* SPDX-License-Identifier: Apache-2.0 */
#include "report/format.h"
hlo_status writer_sarif(const report_writer *t) { (void)t; return HLO_OK; }
hlo_status writer_junit(const report_writer *t) { (void)t; return HLO_OK; }
hlo_status writer_github(const report_writer *t) { (void)t; return HLO_OK; }
hlo_status writer_gitlab(const report_writer *t) { (void)t; return HLO_OK; }
hlo_status writer_markdown(const report_writer *t) { (void)t; return HLO_OK; }
