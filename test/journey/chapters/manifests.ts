import type { Chapter } from '../../steps/step.ts';

const DENIAL = /at most 5 replicas are allowed, got 12/;
const TEST = 'portcullis test -p replicas.yaml';

/** What each format has besides the denial. */
const FORMATS: Readonly<Record<string, RegExp>> = {
  table: /^Deployment web +cap\/replicas +fail$/m,
  json: /"result": "fail"/,
  yaml: /^ +result: fail$/m,
  junit: /<failure /,
  sarif: /"version": "2\.1\.0"/,
  github: /^::error file=app\/deployment\.yaml,line=1,title=cap\/replicas of Deployment web::/m,
  tap: /^not ok 1 - /m,
};

export const MANIFESTS: Chapter = {
  title: '1.2 plain manifests',
  steps: [
    { shows: 'test takes a manifest', sh: `${TEST} app/deployment.yaml`, code: 1, prints: [DENIAL] },
    {
      shows: 'test takes folders, of policies and of manifests',
      sh: 'mkdir policies && cp replicas.yaml tags.yaml policies/ && portcullis test -p policies app',
      code: 1,
      prints: [
        DENIAL,
        /in the pod template \(spec\.template\)/,
        /not Kubernetes objects, and not tested: app\/kustomization/,
      ],
    },
    {
      shows: 'test takes several documents from standard input, and the exit code says that all pass',
      sh: `(sed 's/: 12/: 2/' app/deployment.yaml; echo ---; cat pod.yaml) | ${TEST} -`,
      prints: [/^✔ 2 resources, 1 policy: 1 pass, 1 do not apply/m],
    },
    {
      shows: 'test takes the output of Helm, and names the template',
      sh: `helm template shop chart | ${TEST} -`,
      code: 1,
      prints: [/Deployment shop-web › cap\/replicas +standard input:3 \(shop\/templates\/deployment\.yaml\)/, DENIAL],
    },
    {
      shows: 'test takes the output of Kustomize',
      sh: `kubectl kustomize app | ${TEST} -`,
      code: 1,
      prints: [/Deployment shop-web › cap\/replicas/, DENIAL],
    },
    {
      shows: 'test shows what a policy changes',
      sh: 'portcullis test -p my-mutating/policy.yaml app/deployment.yaml',
      prints: [/^± Deployment web +changed by cap\/my-mutating/m, /^ +│ \+ /m],
    },
    ...Object.entries(FORMATS).map(([format, pattern]) => ({
      shows: `test prints ${format}`,
      sh: `${TEST} app/deployment.yaml -o ${format}`,
      code: 1,
      prints: [pattern, DENIAL],
    })),
    {
      shows: 'run makes the request of an API server for an object',
      sh: 'portcullis run request-facts.yaml -r pod.yaml',
      prints: [/CREATE by kubernetes-admin in default, was nothing/],
    },
    {
      shows: 'run makes an update by another user in another namespace',
      sh: 'portcullis run request-facts.yaml -r pod.yaml --old pod.yaml --user alice --namespace shop',
      prints: [/UPDATE by alice in shop, was web/],
    },
    {
      shows: 'run makes a deletion',
      sh: 'portcullis run request-facts.yaml -r pod.yaml --operation DELETE',
      prints: [/DELETE by kubernetes-admin in default, was web/],
    },
  ],
};
