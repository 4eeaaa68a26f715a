import { startCluster } from '../cluster/cluster.ts';
await using c = await startCluster();
const crd={apiVersion:'apiextensions.k8s.io/v1',kind:'CustomResourceDefinition',metadata:{name:'widgets.example.com'},spec:{group:'example.com',scope:'Namespaced',names:{plural:'widgets',kind:'Widget'},versions:[{name:'v1',served:true,storage:true,schema:{openAPIV3Schema:{type:'object','x-kubernetes-preserve-unknown-fields':true}}}]}};
const q=async (m:string,p:string,body?:unknown)=>{ try { const r=await c.request(m,p,body); return r; } catch(e) { return {status:-1, body:String(e)} } };
console.log((await q('POST','/apis/apiextensions.k8s.io/v1/customresourcedefinitions',crd)).status);
await new Promise(r=>setTimeout(r,2500));
for (const size of [1_500_000, 1_571_000, 1_575_000, 2_000_000, 2_600_000, 3_200_000]) {
  const r=await q('POST','/apis/example.com/v1/namespaces/default/widgets',{apiVersion:'example.com/v1',kind:'Widget',metadata:{name:`a${size}`},text:'x'.repeat(size)});
  console.log(size, r.status, JSON.stringify(r.body).slice(0,300));
}
for (const [p,b] of [['/api/v1/namespaces/default/configmaps',{apiVersion:'v1',kind:'ConfigMap',metadata:{name:'rv',resourceVersion:'5'}}],['/api/v1/configmaps',{apiVersion:'v1',kind:'ConfigMap',metadata:{name:'rv'}}]] as const) {
  const r=await q('POST',p,b); console.log(r.status, JSON.stringify(r.body));
}
