import type { Chapter } from '../../steps/step.ts';

const MESSAGE = 'an image needs a tag that says which version runs';

/** The commands of kubectl that create workloads, and the paths of their templates. */
const WORKLOADS = [
  ['deployment', 'spec.template', ''],
  ['job', 'spec.template', ''],
  ['cronjob', 'spec.jobTemplate.spec.template', "--schedule='@daily'"],
] as const;

/** A policy of each kind of module, with its settings, that denies the pod of app/deployment.yaml. */
const MODULES: Readonly<Record<string, string>> = {
  'kubewarden-wapc': 'required-labels',
  gatekeeper: 'container-limits',
  opa: 'host-namespaces',
  wasi: 'image-registries',
};

export const POD_TEMPLATES: Chapter = {
  title: '1.5 pod templates',
  steps: [
    {
      shows: 'a policy that warns is enforced',
      sh: `sed 's/Enforce/Warn/; s/: tags/: tags-warn/' tags.yaml | kubectl apply -f -
        kubectl wait cap/tags-warn --for=condition=Enforced --timeout=30s`,
      prints: [/condition met$/m],
    },
    ...WORKLOADS.map(([kind, path, flags]) => ({
      shows: `kubectl shows its warning for a ${kind}, which is created`,
      sh: `kubectl create ${kind} warned --image=nginx:latest ${flags} && kubectl delete ${kind} warned`,
      prints: [
        new RegExp(
          `^Warning: cap/tags-warn: pods would be rejected, in the pod template \\(${path}\\): ${MESSAGE}$`,
          'm',
        ),
        /created$/m,
      ],
    })),
    {
      shows: 'a policy that enforces is enforced',
      sh: `kubectl apply -f tags.yaml
        kubectl wait cap/tags --for=condition=Enforced --timeout=30s`,
      prints: [/condition met$/m],
    },
    ...WORKLOADS.map(([kind, path, flags]) => ({
      shows: `a ${kind} is denied at the path of its template`,
      sh: `kubectl create ${kind} denied --image=nginx:latest ${flags}`,
      code: 1,
      prints: [new RegExp(`denied the request: cap/tags: in the pod template \\(${path}\\): ${MESSAGE}$`, 'm')],
    })),
    ...['StatefulSet', 'DaemonSet', 'ReplicaSet'].map((kind) => ({
      shows: `a ${kind} is denied likewise`,
      sh: `sed 's/: Deployment/: ${kind}/; ${kind === 'DaemonSet' ? '/replicas:/d' : ''}' app/deployment.yaml | kubectl apply -f -`,
      code: 1,
      prints: [new RegExp(`denied the request: cap/tags: in the pod template \\(spec\\.template\\): ${MESSAGE}`)],
    })),
    {
      shows: 'a pinned image is admitted, and a pod is denied as before',
      sh: `kubectl create deployment admitted --image=nginx:1.29 && kubectl delete deployment admitted &&
        kubectl run denied --image=nginx:latest`,
      code: 1,
      prints: [
        /^deployment\.apps\/admitted created$/m,
        new RegExp(`denied the request: 2 policies: cap/tags: ${MESSAGE}`),
      ],
    },
    {
      shows: 'what was applied is deleted',
      sh: 'kubectl delete cap tags tags-warn',
      prints: [/"tags" deleted/, /"tags-warn" deleted/],
    },
    ...Object.entries(MODULES).map(([kind, example]) => ({
      shows: `test reports them for modules of ${kind}`,
      sh: `policy=../examples/${example}/pod-templates.yaml
        grep -qx 'executionMode: ${kind}' ../examples/${example}/metadata.yml &&
        sed 's/^  mutating: false/&\\n  podTemplates: Enforce/; s/registry:.*/file:\\/\\/.\\/policy.wasm/; s/mode: monitor/mode: protect/' \
          ../examples/${example}/policy.yaml > $policy
        sed 's/    spec: {containers/    spec: {hostNetwork: true, containers/; s/nginx:/other.example\\/nginx:/' app/deployment.yaml |
          portcullis test -p $policy -`,
      code: 1,
      prints: [/in the pod template \(spec\.template\): /],
    })),
  ],
};
