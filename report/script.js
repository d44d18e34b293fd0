/* SPDX-License-Identifier: Apache-2.0 */
(()=>{
  const tools=document.getElementById('tools'),box=document.getElementById('matmuls'),
    rows=[...box.children],count=document.getElementById('shown');
  let last='';
  const text=r=>r.firstElementChild.textContent.toLowerCase();
  const show=()=>{
    const words=tools.elements.words.value.toLowerCase().split(/\s+/),
      kind=tools.elements.kind.value;
    let n=0;
    for(const r of rows){
      r.hidden=kind&&r.dataset.kind!==kind||!words.every(w=>text(r).includes(w));
      n+=!r.hidden
    }
    count.textContent=n+' of '+rows.length
  };
  const sort=key=>{
    const back=last===key?-1:1;
    last=back<0?'':key;
    rows.sort((a,b)=>{
      const x=a.dataset[key],y=b.dataset[key];
      return back*(isNaN(x)||isNaN(y)?x<y?-1:x>y:y-x)
    });
    box.append(...rows)
  };
  tools.addEventListener('input',show);
  tools.addEventListener('submit',e=>e.preventDefault());
  for(const b of tools.querySelectorAll('button'))
    b.addEventListener('click',()=>sort(b.value));
  show();
  tools.hidden=false
})()
