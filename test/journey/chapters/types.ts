import type { Chapter } from '../../steps/step.ts';

const HOST_PATH = /undefined field 'hostpath' at 1:61, in v1 Pod: did you mean 'hostPath'\?/;

export const TYPES: Chapter = {
  title: '1.3 types and rules',
  steps: [
    {
      shows: 'test warns of a field that no pod has',
      sh: 'portcullis test -p mistyped.yaml pod.yaml',
      prints: [/^warning: /m, HOST_PATH, /^✔ 1 resource/m],
    },
    {
      shows: 'kubectl apply warns of it',
      sh: 'kubectl apply -f mistyped.yaml',
      prints: [/^Warning: /m, HOST_PATH, /\[type-check\]/],
    },
    {
      shows: 'the status says it',
      sh: `kubectl wait cap/mistyped --for=condition=TypeChecked=False --timeout=30s
        kubectl get cap/mistyped -o jsonpath='{.status.conditions[?(@.type=="TypeChecked")].message}'`,
      prints: [HOST_PATH],
    },
    {
      shows: 'apply warns of a field that a custom resource does not have, whose definition is in the same file',
      sh: 'portcullis apply -f widgets.yaml',
      prints: [/^Warning: .*undefined field 'siz' at 1:5, in example\.com\/v1 Widget: did you mean 'size'\?/m],
    },
    {
      shows: 'test warns of it without a cluster',
      sh: 'KUBECONFIG=none portcullis test -p widgets.yaml pod.yaml',
      prints: [/^warning: .*undefined field 'siz'/m],
    },
    {
      shows: 'kubectl apply warns of rules that match nothing, and says what is meant',
      sh: 'kubectl apply -f misnamed.yaml',
      prints: [
        /resources\[0\]: .*"deployment".* Did you mean deployments\?/,
        /apiGroups: the cluster serves no API group "extensions": deployments are in "apps"/,
        /apiVersions: Kubernetes does not serve deployments in version "v2": it serves "v1"/,
      ],
    },
    {
      shows: 'the status says it',
      sh: `kubectl wait cap/misnamed --for=condition=ResourcesServed=False --timeout=30s
        kubectl get cap/misnamed -o jsonpath='{.status.conditions[?(@.type=="ResourcesServed")].message}'`,
      prints: [/Did you mean deployments\?/],
    },
    {
      shows: 'test warns of such rules',
      sh: 'portcullis test -p misnamed.yaml pod.yaml',
      prints: [/^warning: .*Did you mean deployments\?/m, /^warning: .*does not serve deployments in version "v2"/m],
    },
    {
      shows: 'a policy with an expression that cannot be evaluated is refused',
      sh: `sed "s/hostpath/hostPath + 1 +/" mistyped.yaml | kubectl apply -f -`,
      code: 1,
      prints: [/is invalid: spec\.settings\.validations\[0\]\.expression: .*compilation failed/],
    },
    {
      shows: 'what was applied is deleted by its files',
      sh: 'portcullis delete -f mistyped.yaml -f misnamed.yaml -f widgets.yaml',
      prints: [/mistyped deleted/, /misnamed deleted/, /widgets\.example\.com deleted/],
    },
  ],
};
