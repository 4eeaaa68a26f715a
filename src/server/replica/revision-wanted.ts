// The wanted policies of a replica, from PolicyRevisions. These come from the controller, but are validated
// nevertheless: an invalid revision fails alone.
import { DEGRADED_REJECTED, DISARMED, revisionMismatch, servesInsteadOf } from '../../resources/index.ts';
import type { PolicyMatch, PolicyRevision, ServingTurn } from '../../resources/index.ts';
import { INVALID_PARAMETERS, type PinnedModule, pinnedSpec } from '../../control/index.ts';
import {
  failurePolicyOf,
  type FailedRevision,
  type WaitingRevision,
  type WantedPolicy,
  type WantedRevision,
} from '../policies/wanted-policy.ts';
import { matchFields, revisionMatch } from './revision-match.ts';
import { isJsonObject, own, textOf } from '../../values/index.ts';

/**
 * Combines the revisions of one policy: of those in state Serving the one with the highest order serves; Validated and
 * Staged ones are loaded beside it.
 * @param productNamespace see MatchOptions
 */
export function wantedOf(revisions: Iterable<PolicyRevision>, productNamespace: string): WantedPolicy {
  let serving: PolicyRevision | undefined;
  let newest: PolicyRevision | undefined;
  let served: PolicyRevision | undefined;
  const staged: PolicyRevision[] = [];
  const buckets = new Set<string>();
  const uids = new Set<string>();
  for (const revision of revisions) {
    const state = revision.status?.state;
    if (state !== 'Retired' && state !== 'Superseded') {
      uids.add(uidOfPolicy(revision));
    }
    if (state === 'Serving' || state === 'Validated' || state === 'Staged') {
      buckets.add(revisionMatch(revision, productNamespace)?.bucket ?? '');
    }
    if (state === 'Serving' && (serving === undefined || servesInsteadOf(turnOf(revision), turnOf(serving)))) {
      serving = revision;
    } else if (state === 'Validated' || state === 'Staged') {
      staged.push(revision);
    }
    if (isLastWord(revision) && (served === undefined || servesInsteadOf(turnOf(revision), turnOf(served)))) {
      served = revision;
    }
    newest = newest === undefined || revision.spec.revision > newest.spec.revision ? revision : newest;
  }
  buckets.delete('');
  const failed = serving === undefined ? failureOf(newest, served, staged, productNamespace) : undefined;
  return {
    ...(serving === undefined ? {} : { serving: wantedRevision(serving, productNamespace) }),
    staged: staged
      .toSorted((a, b) => a.spec.revision - b.spec.revision)
      .map((revision) => wantedRevision(revision, productNamespace)),
    ...(failed === undefined ? {} : { failed }),
    ...only(uids),
    ...(newest !== undefined && isWaiting(newest) ? { waiting: waitingRevision(newest) } : {}),
    ...(buckets.size < 2 ? {} : { buckets: [...buckets].toSorted() }),
  };
}

/** Empty where it is not known. */
function uidOfPolicy({ spec }: PolicyRevision): string {
  return textOf((spec.policy as Partial<PolicyRevision['spec']['policy']> | undefined)?.uid);
}

function only(uids: ReadonlySet<string>): Pick<WantedPolicy, 'policyUid'> {
  const [policyUid = ''] = uids;
  return uids.size === 1 && policyUid !== '' ? { policyUid } : {};
}

function turnOf(one: PolicyRevision): ServingTurn {
  return { order: orderOf(one), number: one.spec.revision };
}

function orderOf({ status }: PolicyRevision): number {
  const order: unknown = status?.order;
  return typeof order === 'number' && Number.isSafeInteger(order) ? order : 0;
}

/** Whether a revision failed for parameters, and may succeed when they change. */
function isWaiting({ status }: PolicyRevision): boolean {
  return status?.state === 'Failed' && status.reason === INVALID_PARAMETERS;
}

function waitingRevision({ metadata, spec, status }: PolicyRevision): WaitingRevision {
  const { name = '', uid = '' } = metadata;
  const tried: unknown = status?.triedParameters;
  const { revision, snapshot } = spec;
  return { name, uid, revision, snapshot, ...(typeof tried === 'string' ? { tried } : {}) };
}

/** Whether a revision served until the newest one failed, and its failurePolicy answers since. */
function isRejecting({ status }: PolicyRevision): boolean {
  return status?.state === 'Retired' && status.reason === DEGRADED_REJECTED;
}

/** Whether a revision served until the policy was disarmed, and no request matches it since. */
function isDisarmed({ status }: PolicyRevision): boolean {
  return status?.state === 'Retired' && status.reason === DISARMED;
}

/** Whether a revision decides what requests get, although it was retired. */
function isLastWord(revision: PolicyRevision): boolean {
  return isRejecting(revision) || isDisarmed(revision);
}

/**
 * What answers while nothing serves: the failurePolicy of what served until another one failed; without it, that of the newest,
 * if it failed, or is enforced before it served. Nothing, once the policy was disarmed.
 */
function failureOf(
  newest: PolicyRevision | undefined,
  served: PolicyRevision | undefined,
  staged: readonly PolicyRevision[],
  productNamespace: string,
): FailedRevision | undefined {
  const state = newest?.status?.state ?? 'Candidate';
  const reason = textOf(newest?.status?.reason);
  const isFailed = staged.length === 0 && (state === 'Failed' || (state === 'Candidate' && reason !== ''));
  // A first revision that no replica can load, where unserved policies reject.
  const isStuck = (state === 'Validated' || state === 'Staged') && newest?.status?.enforced === true;
  // What served after it, and is on its way again, is the last one.
  const isLast = served !== undefined && staged.every((one) => orderOf(one) < orderOf(served));
  const inForce = isLast ? served : isFailed || isStuck ? newest : undefined;
  if (newest === undefined || inForce === undefined) {
    return undefined;
  }
  const { revision, snapshot } = inForce.spec;
  const { name = '', uid = '' } = inForce.metadata;
  return {
    name,
    uid,
    revision,
    message:
      textOf((isFailed ? newest : inForce).status?.message) ||
      reason ||
      (isStuck ? 'no replica can load it' : 'the newest revision failed'),
    failurePolicy: failurePolicyOf(snapshot),
    ...(newest.status?.enforced === false || isDisarmed(inForce) ? {} : matchOf(inForce, productNamespace)),
  };
}

function matchOf(revision: PolicyRevision, productNamespace: string): { readonly match?: PolicyMatch } {
  const match = revisionMatch(revision, productNamespace);
  return match === undefined ? {} : { match };
}

function wantedRevision(one: PolicyRevision, productNamespace: string): WantedRevision {
  const { metadata, spec, status } = one;
  const modules = modulesOf(status?.modules);
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    revision: spec.revision,
    // A replica without a module of a registry pulls the one of this manifest, although a tag may have moved.
    snapshot: pinnedSpec<unknown>(
      spec.snapshot,
      modules.filter(({ manifest }) => typeof manifest === 'string'),
    ),
    order: orderOf(one),
    ...(status?.enforced === false ? { isEnforced: false } : {}),
    modules,
    ...matchOf(one, productNamespace),
  };
}

function modulesOf(modules: unknown): PinnedModule[] {
  return (Array.isArray(modules) ? modules : []).filter((module: Partial<PinnedModule> | null) => {
    const { name, module: reference, digest } = module ?? {};
    return [name, reference, digest].every((text) => typeof text === 'string');
  }) as PinnedModule[];
}

/** A revision in the memory of a replica. */
export interface KeptRevision extends PolicyRevision {
  /** Set when it is not served: see {@link revisionMismatch}. */
  readonly mismatch?: string;
}

/**
 * The fields of a revision to keep in memory, for {@link wantedOf}: the spec of loaded revisions; the match rules of
 * failed ones, and of one whose failurePolicy answers; only the names of former ones, which are ten times as many, and of
 * those that are not served.
 */
export function trimRevision(revision: PolicyRevision): KeptRevision {
  const mismatch = revisionMismatch(revision);
  if (mismatch === undefined) {
    return trimmed(revision);
  }
  const { policyId, policyServer, revision: number } = (revision.spec as Partial<PolicyRevision['spec']> | null) ?? {};
  const spec = {
    policyId: textOf(policyId),
    policyServer: textOf(policyServer),
    revision: Number.isSafeInteger(number) ? number : 0,
  };
  return { metadata: namesOf(revision), spec, ...SUPERSEDED, mismatch } as unknown as KeptRevision;
}

function namesOf({ metadata }: PolicyRevision): PolicyRevision['metadata'] {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = metadata;
  return { name, namespace, uid, resourceVersion };
}

function trimmed(whole: PolicyRevision): PolicyRevision {
  const { spec, status } = whole;
  const { policy, policyId, policyServer, revision, ownWebhook, snapshot } = spec;
  const state = status?.state ?? 'Candidate';
  let kept: Pick<PolicyRevision, 'status'> & { readonly snapshot?: unknown };
  switch (state) {
    case 'Validated':
    case 'Staged':
    case 'Serving': {
      const { order, modules, enforced } = status ?? {};
      kept = { snapshot, status: { state, order, modules, enforced } as PolicyRevision['status'] & object };
      break;
    }
    case 'Failed':
    case 'Candidate': {
      const { reason, message, enforced } = status ?? {};
      const text = { reason, message, enforced } as PolicyRevision['status'];
      const fields = matchFields(snapshot);
      const needed = isWaiting(whole) ? withParameters(fields, snapshot) : fields;
      kept = { snapshot: needed, status: { state, ...text } };
      break;
    }
    case 'Retired': {
      const { reason, message, order } = status ?? {};
      const inForce = { state, reason, message, order } as PolicyRevision['status'] & object;
      kept = isLastWord(whole) ? { snapshot: matchFields(snapshot), status: inForce } : RETIRED;
      break;
    }
    default:
      kept = SUPERSEDED;
  }
  const of = 'snapshot' in kept ? { policy, ...(ownWebhook === undefined ? {} : { ownWebhook }) } : {};
  const rest = { spec: { policyId, policyServer, revision, snapshot: kept.snapshot, ...of }, status: kept.status };
  return { metadata: namesOf(whole), ...rest } as PolicyRevision;
}

/** The fields of a spec, with its parameters, or those of the members of a group. */
function withParameters(fields: unknown, snapshot: unknown): unknown {
  if (!isJsonObject(snapshot) || !isJsonObject(fields)) {
    return fields;
  }
  const parametersOf = (use: unknown): object => {
    const parameters = isJsonObject(use) ? own(use, 'parameters') : undefined;
    return parameters === undefined ? {} : { parameters };
  };
  const members = own(snapshot, 'policies');
  const policies = isJsonObject(members)
    ? { policies: Object.fromEntries(Object.entries(members).map(([name, member]) => [name, parametersOf(member)])) }
    : {};
  return { ...fields, ...parametersOf(snapshot), ...policies };
}

const RETIRED = { status: { state: 'Retired' } } as const;
const SUPERSEDED = { status: { state: 'Superseded' } } as const;
