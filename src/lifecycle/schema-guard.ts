// Holds rollouts while the cluster serves another schema than ours. API servers drop fields that a schema does not have, so that
// a policy with parameters would fall back to its settings: an edit would turn off what its parameters enforce.
import type { Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  CONTROLLER_FIELD_MANAGER,
  isGroupSpec,
  keyOf,
  type PolicyParameters,
  type PolicyRevision,
  type ResourceType,
  snapshotOf,
} from '../resources/index.ts';
import { Waiting } from '../runtime/index.ts';
import { asJson, type JsonObject } from '../values/index.ts';
import { REASONS } from './rollout/reasons.ts';

/** Delay before the schema is tried again: nothing reports that it was replaced. Milliseconds. */
const RETRY_MS = 30_000;

/** Parameters by member of a group; under the empty name those of a single policy. */
type ParametersByUse = ReadonlyMap<string, PolicyParameters>;

/**
 * Checks that a policy which has lost its parameters since its newest revision could have them: a dry run sets them again.
 * @throws Waiting `SchemaReplaced`, ApiError, ClusterError
 */
export async function checkSchema(
  cluster: Pick<Cluster, 'patch'>,
  type: ResourceType<AdmissionPolicyObject>,
  policy: AdmissionPolicyObject,
  revisions: readonly PolicyRevision[],
  signal: AbortSignal,
): Promise<void> {
  const lost = lostParameters(policy.spec, newestOf(revisions));
  if (lost.size === 0) {
    return;
  }
  const body = { spec: patchOf(policy.spec, lost) };
  const options = { dryRun: true, fieldManager: CONTROLLER_FIELD_MANAGER, signal };
  const tried = await cluster.patch(type, keyOf(policy), { type: 'merge', body }, options);
  const kept = parametersOf(tried.spec);
  if ([...lost.keys()].some((use) => !kept.has(use))) {
    const what = `the cluster serves a schema of ${type.resource}.${type.group} without parameters, which API servers drop`;
    const action = 'apply the CustomResourceDefinitions of Portcullis, and then the policy again';
    throw new Waiting(REASONS.schemaReplaced, RETRY_MS, `${what}: nothing new is rolled out. ${action}`);
  }
}

function newestOf(revisions: readonly PolicyRevision[]): PolicyRevision | undefined {
  return revisions.toSorted((a, b) => b.spec.revision - a.spec.revision)[0];
}

/** Parameters of the newest revision of what the policy still has. */
function lostParameters(spec: AdmissionPolicySpec, newest: PolicyRevision | undefined): ParametersByUse {
  const before = newest === undefined ? new Map<string, PolicyParameters>() : parametersOf(snapshotOf(newest));
  const now = parametersOf(spec);
  const hasUse = (use: string): boolean =>
    use === '' ? !isGroupSpec(spec) : isGroupSpec(spec) && Object.hasOwn(spec.policies, use);
  return new Map([...before].filter(([use]) => !now.has(use) && hasUse(use)));
}

function parametersOf(spec: AdmissionPolicySpec): ParametersByUse {
  const uses: readonly (readonly [string, { readonly parameters?: PolicyParameters }])[] = isGroupSpec(spec)
    ? Object.entries(spec.policies)
    : [['', spec]];
  return new Map(uses.flatMap(([use, { parameters }]) => (parameters === undefined ? [] : [[use, parameters]])));
}

function patchOf(spec: AdmissionPolicySpec, lost: ParametersByUse): JsonObject {
  const patches = [...lost].map(([use, parameters]) => [use, { parameters: asJson(parameters) }] as const);
  return isGroupSpec(spec) ? { policies: Object.fromEntries(patches) } : { ...patches[0]?.[1] };
}
