// Holds rollouts while the cluster serves another schema than ours. API servers drop fields that a schema does not have, so that
// a policy with parameters would fall back to its settings: an edit would turn off what its parameters enforce. Nor do they keep
// an edit from naming another PolicyServer, which would end the enforcement by the one that serves.
import { ApiError, type Cluster } from '../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  type AdmissionPolicySpec,
  CONTROLLER_FIELD_MANAGER,
  DEFAULT_POLICY_SERVER,
  isGroupSpec,
  keyOf,
  type PolicyRevision,
  type ResourceType,
  snapshotOf,
} from '../resources/index.ts';
import { Waiting } from '../runtime/index.ts';
import { asJson, isJsonObject, type JsonObject, type JsonValue, own } from '../values/index.ts';
import { lastAppliedSpec, REASONS } from '../rollout/index.ts';

/** Delay before the schema is tried again: nothing reports that it was replaced. Milliseconds. */
const RETRY_MS = 30_000;

/** Parameters by member of a group; under the empty name those of a single policy. */
type ParametersByUse = ReadonlyMap<string, JsonObject>;

/**
 * Checks that a policy is on the PolicyServer of its revisions, and that one which has lost its parameters, since its newest
 * revision or since it was applied, could have them: a dry run sets them again.
 * @throws Waiting `SchemaReplaced`, ApiError, ClusterError
 */
export async function checkSchema(
  cluster: Pick<Cluster, 'patch'>,
  type: ResourceType<AdmissionPolicyObject>,
  policy: AdmissionPolicyObject,
  revisions: readonly PolicyRevision[],
  signal: AbortSignal,
): Promise<void> {
  const newest = newestOf(revisions);
  checkPolicyServer(policy, newest);
  const before = newest === undefined ? [] : [...parametersOf(asJson(snapshotOf(newest)))];
  const applied = parametersOf(lastAppliedSpec(policy));
  const lost = lostParameters(policy.spec, new Map([...applied, ...before]));
  if (lost.size === 0) {
    return;
  }
  // The schema may be back, but the policy is still without its parameters.
  if (isHeld(policy)) {
    throw replaced(type);
  }
  const body = { spec: patchOf(policy.spec, lost) };
  const options = { dryRun: true, fieldManager: CONTROLLER_FIELD_MANAGER, signal };
  const kept = await keptParameters(cluster.patch(type, keyOf(policy), { type: 'merge', body }, options));
  if (kept !== undefined && [...lost.keys()].some((use) => !kept.has(use))) {
    throw replaced(type);
  }
}

function replaced({ resource, group }: ResourceType): Waiting {
  const what = `the policy was written while the cluster served a schema of ${resource}.${group} without parameters, which API servers drop`;
  const action = 'apply the CustomResourceDefinitions of Portcullis, and then the policy again';
  return new Waiting(REASONS.schemaReplaced, RETRY_MS, `${what}: nothing new is rolled out. ${action}`);
}

/**
 * Checks that a policy is still on the PolicyServer of its revisions. Another schema lets the field change, but what serves can
 * serve nowhere else.
 * @throws Waiting `SchemaReplaced`
 */
function checkPolicyServer({ spec }: AdmissionPolicyObject, newest: PolicyRevision | undefined): void {
  const policyServer = spec.policyServer ?? DEFAULT_POLICY_SERVER;
  const before = newest?.spec.policyServer ?? policyServer;
  if (policyServer !== before) {
    const what = `spec.policyServer was changed from ${before} to ${policyServer} while the cluster served a schema that allows it`;
    const action = `set it to ${before} again, or apply the policy under another name for PolicyServer ${policyServer}, and delete this one when that one is enforced`;
    const message = `${what}: nothing new is rolled out, and PolicyServer ${before} goes on serving the policy. ${action}`;
    throw new Waiting(REASONS.schemaReplaced, RETRY_MS, message);
  }
}

/** Whether this generation of the policy was held before. Of its status, other schemas have the conditions. */
function isHeld({ metadata, status }: AdmissionPolicyObject): boolean {
  return (status?.conditions ?? []).some(
    ({ reason, observedGeneration }) => reason === REASONS.schemaReplaced && observedGeneration === metadata.generation,
  );
}

function newestOf(revisions: readonly PolicyRevision[]): PolicyRevision | undefined {
  return revisions.toSorted((a, b) => b.spec.revision - a.spec.revision)[0];
}

/** The parameters that a dry run keeps; undefined if the schema refuses them, because then it has the field. */
async function keptParameters(dryRun: Promise<AdmissionPolicyObject>): Promise<ParametersByUse | undefined> {
  try {
    return parametersOf(asJson((await dryRun).spec));
  } catch (error) {
    if (error instanceof ApiError && error.code === 422) {
      return undefined;
    }
    throw error;
  }
}

/** Former parameters of what the policy still has. */
function lostParameters(spec: AdmissionPolicySpec, before: ParametersByUse): ParametersByUse {
  const now = parametersOf(asJson(spec));
  const hasUse = (use: string): boolean =>
    use === '' ? !isGroupSpec(spec) : isGroupSpec(spec) && Object.hasOwn(spec.policies, use);
  return new Map([...before].filter(([use]) => !now.has(use) && hasUse(use)));
}

/** @param spec may be any JSON: the annotation of client-side apply is not validated */
function parametersOf(spec: JsonValue | undefined): ParametersByUse {
  if (!isJsonObject(spec)) {
    return new Map();
  }
  const members = own(spec, 'policies');
  const uses = isJsonObject(members) ? Object.entries(members) : [['', spec] as const];
  return new Map(
    uses.flatMap(([use, value]) => {
      const parameters = isJsonObject(value) ? own(value, 'parameters') : undefined;
      return isJsonObject(parameters) ? [[use, parameters] as const] : [];
    }),
  );
}

function patchOf(spec: AdmissionPolicySpec, lost: ParametersByUse): JsonObject {
  const patches = [...lost].map(([use, parameters]) => [use, { parameters }] as const);
  return isGroupSpec(spec) ? { policies: Object.fromEntries(patches) } : { ...patches[0]?.[1] };
}
