// The status of NetworkPolicy that Kubernetes 1.24 to 1.27 had behind a feature gate (KEP-2943).
import { CONDITIONS, type KubernetesObject, type Schema } from '../../resources/index.ts';
import { ObjectSchema } from '../../resources/validation/index.ts';
import type { ResourceDefinition } from '../resource-definition.ts';

const STATUS: Schema = {
  description: 'What the network providers do with the policy.',
  type: 'object',
  default: {},
  properties: { conditions: CONDITIONS },
};
const VALIDATED = new ObjectSchema({ type: 'object', properties: { status: STATUS } });

/** The kinds, with a status of NetworkPolicies. */
export function withNetworkPolicyStatus(kinds: readonly ResourceDefinition[]): readonly ResourceDefinition[] {
  return kinds.map((definition) =>
    definition.group === 'networking.k8s.io' && definition.kind === 'NetworkPolicy'
      ? withStatus(definition)
      : definition,
  );
}

function withStatus(definition: ResourceDefinition): ResourceDefinition {
  const { properties, ...published } = definition.schema();
  const schema: Schema = { ...published, properties: { ...properties, status: STATUS } };
  return {
    ...definition,
    hasStatus: true,
    schema: () => schema,
    validate: (object, old) => [
      ...(definition.validate?.(object, old) ?? []),
      ...VALIDATED.validate(statusOnly(object), old && statusOnly(old)),
    ],
  };
}

function statusOnly({ apiVersion, kind, status }: KubernetesObject): KubernetesObject {
  return { apiVersion, kind, metadata: {}, ...(status === undefined ? {} : { status }) };
}
