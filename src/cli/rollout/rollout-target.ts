// The policy of a `portcullis rollout` command.
import { Argument, Command, InvalidArgumentError } from 'commander';
import type { ApiResource, KubernetesCluster } from '../../cluster/index.ts';
import {
  type AdmissionPolicyObject,
  ANNOTATIONS,
  type KubernetesObject,
  type ObjectKey,
  type OwnKind,
  POLICIES,
  type Policy,
  POLICY_KINDS,
} from '../../resources/index.ts';
import { addClusterFlags, type ClusterFlags, connect, type Connected } from '../cluster/cluster-flags.ts';
import { keyIn, objectName, selectResources } from '../cluster/resource-arguments.ts';
import { PRODUCT_NAMESPACE } from '../product-namespace.ts';
import { CliError, usageError } from '../errors.ts';

const KINDS_WITH_ROLLOUT: readonly OwnKind[] = [...POLICY_KINDS, POLICIES];
/** The field manager of annotations that these commands set, so that a later apply of the manifest keeps them. */
const FIELD_MANAGER = 'portcullis-rollout';

export interface RolloutFlags extends ClusterFlags {
  readonly productNamespace: string;
}

/** A policy of a kind that has revisions. */
export type RolledOutPolicy = AdmissionPolicyObject | Policy;

/** A policy in its cluster. */
export interface RolloutTarget<Object extends RolledOutPolicy = RolledOutPolicy> {
  readonly cluster: KubernetesCluster;
  readonly type: ApiResource;
  readonly key: ObjectKey;
  /** `clusteradmissionpolicy.policies.kubewarden.io/one` */
  readonly name: string;
  /** As it was at the start of the command. */
  readonly policy: Object;
  /** The namespace of PolicyRevisions. */
  readonly productNamespace: string;
}

/** A subcommand of `rollout` for one policy. */
export function rolloutCommandOf(name: string, description: string): Command {
  return addClusterFlags(
    new Command(name)
      .description(description)
      .addArgument(new Argument('<policy...>', 'the policy: NAME, TYPE/NAME, or TYPE NAME'))
      .option('--product-namespace <name>', 'namespace of PolicyRevisions', PRODUCT_NAMESPACE),
  );
}

/** Calls `work` with the policy of the arguments. @throws CliError, ApiError */
export async function withTarget(
  args: readonly string[],
  flags: RolloutFlags,
  work: (target: RolloutTarget) => Promise<void>,
): Promise<void> {
  requireNames(args);
  using connected = await connect(flags);
  await work(await targetOf(args, connected, flags.productNamespace));
}

/** @throws CliError where a number stands in the place of a policy */
function requireNames(args: readonly string[]): void {
  const [number, ...others] = args.filter((argument) => REVISION_NUMBER.test(argument));
  if (number !== undefined && others.length === 0 && args.some((argument) => argument.includes('/'))) {
    throw usageError(
      `${number} is not the name of a policy`,
      `A revision is named by a flag: --revision ${number}, of undo --to-revision ${number}, of diff --from and --to.`,
    );
  }
}

/** The policy of the arguments. @throws CliError, ApiError */
export async function targetOf(
  args: readonly string[],
  { cluster, namespace }: Pick<Connected, 'cluster' | 'namespace'>,
  productNamespace: string,
): Promise<RolloutTarget> {
  const selections = await selectResources(cluster, args, { namespace, isCandidate: hasRollout });
  const [selection] = selections;
  const [name] = selection?.names ?? [];
  if (selection === undefined || name === undefined || selections.length > 1 || selection.names.length > 1) {
    throw usageError('expected one policy', 'Name it as NAME or TYPE/NAME, such as cap/pinned-images.');
  }
  const { type } = selection;
  if (!hasRollout(type)) {
    throw usageError(
      `${objectName(type, name)} has no rollout: expected a policy`,
      `Kinds with a rollout: ${KINDS_WITH_ROLLOUT.map(({ kind }) => kind).join(', ')}.`,
    );
  }
  const key = keyIn(type, namespace, name);
  const policy = (await cluster.get(type, key)) as RolledOutPolicy;
  return { cluster, type, key, name: objectName(type, name), policy, productNamespace };
}

export function hasRollout({ group, kind }: Pick<ApiResource, 'group' | 'kind'>): boolean {
  return KINDS_WITH_ROLLOUT.some((one) => one.group === group && one.kind === kind);
}

/** Whether it is a governance policy, which no policy server runs. */
export function isGovernancePolicy(policy: RolledOutPolicy): policy is Policy {
  return policy.kind === POLICIES.kind;
}

/** The target of a command for admission policies only. @param instead what a governance policy has in its place @throws CliError */
export function admissionTarget(target: RolloutTarget, instead: string): RolloutTarget<AdmissionPolicyObject> {
  const { policy } = target;
  if (isGovernancePolicy(policy)) {
    throw usageError(`${target.name} is a governance policy`, instead);
  }
  return { ...target, policy };
}

/** Sets an annotation of the policy, or removes it for `null`; returns the policy. */
export async function annotate(
  { cluster, type, key }: RolloutTarget,
  annotation: keyof typeof ANNOTATIONS,
  value: string | null,
  isDryRun = false,
): Promise<RolledOutPolicy> {
  const body = { metadata: { annotations: { [ANNOTATIONS[annotation]]: value } } };
  return (await cluster.patch(
    type,
    key,
    { type: 'merge', body },
    { fieldManager: FIELD_MANAGER, dryRun: isDryRun },
  )) as RolledOutPolicy;
}

/** The value of the policy's pin, which users write. */
export function pinOf({ metadata }: Pick<KubernetesObject, 'metadata'>): string | undefined {
  return metadata.annotations?.[ANNOTATIONS.pin];
}

/** The policy was deleted during the command. */
export function goneError({ name }: RolloutTarget): CliError {
  return new CliError(`${name} was deleted meanwhile`);
}

/** The number of a revision on the command line. */
export const REVISION_NUMBER = /^\d{1,15}$/;

/** Parses the value of a flag for a revision. */
export function revisionNumber(text: string): number {
  const value = Number(text);
  if (!REVISION_NUMBER.test(text) || value < 1) {
    throw new InvalidArgumentError(`expected the number of a revision, from 1, got ${text}`);
  }
  return value;
}
