// Objects of our own kinds in a new installation.
import { DEFAULT_POLICY_SERVER, type JsonObject, type KubernetesObject } from '../../resources/index.ts';
import { given } from './given.ts';
import { componentLabels, type InstallContext } from './naming.ts';

/** The PolicyServer of policies that name none. */
export function defaultPolicyServer({ values }: InstallContext): readonly KubernetesObject[] {
  const { replicas, requests, limits, imagePullSecret, env } = values.policyServer;
  return [
    {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: DEFAULT_POLICY_SERVER, labels: componentLabels('policy-server') },
      spec: { image: values.image, replicas, maxUnavailable: 1, ...given({ imagePullSecret, requests, limits, env }) },
    },
  ];
}

const PODS = [
  {
    apiGroups: [''],
    apiVersions: ['v1'],
    resources: ['pods', 'pods/ephemeralcontainers'],
    operations: ['CREATE', 'UPDATE'],
  },
];

/** Recommended policies with builtin modules: two of the examples, for all namespaces. */
export function recommendedPolicies({ values }: InstallContext): readonly KubernetesObject[] {
  const policy = (name: string, description: string, module: string, settings: JsonObject): KubernetesObject => ({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: {
      name,
      labels: componentLabels('recommended-policies'),
      annotations: { 'io.kubewarden.policy.description': description },
    },
    spec: { module, mode: values.recommendedPolicies.mode, mutating: false, rules: PODS, settings },
  });
  return [
    policy(
      'recommended-pod-security',
      'The baseline Pod Security Standard; warns of what is not restricted.',
      'builtin:pod-security',
      {
        enforce: 'baseline',
        warn: 'restricted',
        audit: 'restricted',
      },
    ),
    policy(
      'recommended-pinned-images',
      'Images have a tag that is not latest, or a digest.',
      'builtin:cel',
      PINNED_IMAGES,
    ),
  ];
}

/** The settings of examples/pinned-images, which has tests. */
const PINNED_IMAGES: JsonObject = {
  variables: [
    {
      name: 'containers',
      expression:
        'object.spec.containers + object.spec.?initContainers.orValue([]) + object.spec.?ephemeralContainers.orValue([])',
    },
    {
      name: 'unpinned',
      expression:
        "variables.containers.filter(c, !c.image.contains('@sha256:') && (c.image.endsWith(':latest') || !c.image.matches(':[^/]+$'))).map(c, c.image)",
    },
  ],
  validations: [
    {
      expression: 'variables.unpinned.size() == 0',
      messageExpression: "variables.unpinned.join(', ') + ': an image needs a tag that says which version runs'",
    },
  ],
};
