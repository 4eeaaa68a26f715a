// A model of the rollout of one policy: an API server, controllers and replicas whose caches lag. A world is plain,
// immutable data; a move returns another world.
import {
  DEGRADED_REJECTED,
  DISARMED,
  type AdmissionPolicyStatus,
  type RevisionState,
} from '../../../resources/index.ts';
import type { AdmissionRolloutView } from '../admission-rollout-view.ts';
import type { RolloutPlan, RolloutSettings } from '../../../rollout/index.ts';
import type { requestOutcome } from '../request-outcome.ts';

/**
 * Specs are letters. `a`, `b` and `c` are valid; `x` is invalid; `f` cannot be fetched while faults are left. `A` is `a` with
 * failurePolicy Ignore.
 */
export const SPECS = ['a', 'A', 'b', 'c', 'x', 'f'] as const;
export type Spec = (typeof SPECS)[number];

export interface Revision {
  readonly n: number;
  readonly spec: Spec;
  readonly state: RevisionState;
  readonly reason: string;
  readonly order: number;
  readonly isPinned: boolean;
  /** What its tag led to when it was validated. */
  readonly tag: number;
  /** The annotation `refresh` when it was made, and the one for which its modules had not changed; 0: none. */
  readonly refresh: number;
  readonly refreshed: number;
  readonly attempts: number;
  readonly retries: boolean;
  /** Whether deadlines and retries since its last write have passed. */
  readonly late: boolean;
  /** Whether replicas answer by the failurePolicy while it is the newest and nothing serves. */
  readonly isEnforced: boolean;
}

export interface Policy {
  readonly spec: Spec;
  readonly pin: number;
  /** The annotation `refresh`; 0: none. */
  readonly refresh: number;
  /** Whether it has the annotation `disarmed`. */
  readonly isDisarmed: boolean;
  /** The published status. */
  readonly status: AdmissionPolicyStatus | undefined;
}

/**
 * What a replica reads from revisions: the serving one with its order, those to stage, and whether nothing can serve.
 */
interface Wanted {
  readonly serving: number;
  readonly order: number;
  readonly staged: readonly number[];
  readonly failed: boolean;
  /** Whether nothing serves because the policy was disarmed. */
  readonly isDisarmed: boolean;
  /** The revision whose failurePolicy answers while nothing is loaded; 0: none. */
  readonly answering: number;
  /** What requests get then. */
  readonly otherwise: 'rejected' | 'admitted' | 'nothing';
}

export interface Replica {
  readonly name: string;
  readonly state: 'connecting' | 'connected' | 'lost';
  /** The state of revisions that the replica has read, and the afterDeadlines states that it has not read yet. */
  readonly sees: Wanted;
  readonly coming: readonly Wanted[];
  readonly loaded: readonly number[];
  readonly failed: readonly number[];
  readonly serves: number;
  readonly order: number;
}

/** The caches of a controller; each may lag. */
export interface Belief {
  readonly policy: Policy;
  readonly revisions: readonly Revision[];
  /** Specs that the API server covers. */
  readonly covered: string;
  /** Undefined right after its start. */
  readonly replicas: readonly Replica[] | undefined;
  /** No longer the leader: its last write may still arrive. */
  readonly isFormer?: true;
}

/** Events that may still happen. */
export interface Budget {
  readonly specs: readonly Spec[];
  /** Further pins; 0 unpins. */
  readonly pins: readonly number[];
  /** Further changes of the annotation `disarmed`. */
  readonly disarms: readonly boolean[];
  /** Further refreshes. */
  readonly refreshes: number;
  /** How often the tag of all modules moves. */
  readonly tags: number;
  /** How often time passes beyond all deadlines. */
  readonly ticks: number;
  /** Failed loads and fetches; replicas that disconnect, stop or start. */
  readonly faults: number;
  /** Changes of the leader. */
  readonly leaders: number;
}

export interface World {
  readonly policy: Policy;
  readonly revisions: readonly Revision[];
  readonly covered: string;
  /** What the tag of all modules leads to. */
  readonly tag: number;
  readonly replicas: readonly Replica[];
  readonly controllers: readonly Belief[];
  readonly budget: Budget;
}

export interface Rules {
  readonly settings: RolloutSettings;
  /** Whether the caches of a controller advance independently. */
  readonly hasSeparateCaches: boolean;
  /** Kinds of faults. */
  readonly faults: ReadonlySet<'load' | 'fetch' | 'cut' | 'restart' | 'leave' | 'join'>;
  readonly plan: (view: AdmissionRolloutView) => RolloutPlan;
  readonly outcome: typeof requestOutcome;
  /** Whether replicas report the order by which they serve. */
  readonly hasOrders: boolean;
  /** Whether nothing can be fetched any more, by controllers or replicas. */
  readonly isDown?: true;
}

export interface Move {
  readonly name: string;
  readonly world: World;
}

/** The time in every world. Milliseconds. */
export const NOW = 1_000_000;
export const DEADLINE_MS = 1_000;
export const SETTINGS: RolloutSettings = {
  strategy: 'Available',
  progressDeadlineMs: DEADLINE_MS,
  historyLimit: 10,
  degraded: 'Serve',
  unserved: 'Ignore',
};

/** A policy that has just been applied. */
export function newWorld(spec: Spec, replicas: number, budget: Partial<Budget>): World {
  const policy: Policy = { spec, pin: 0, refresh: 0, isDisarmed: false, status: undefined };
  const started = Array.from({ length: replicas }, (_, index) => newReplica(`r${index}`, []));
  const belief: Belief = { policy, revisions: [], covered: '', replicas: started };
  const none: Budget = { specs: [], pins: [], disarms: [], refreshes: 0, tags: 0, ticks: 0, faults: 0, leaders: 0 };
  return {
    policy,
    revisions: [],
    covered: '',
    tag: 1,
    replicas: started,
    controllers: [belief],
    budget: { ...none, ...budget },
  };
}

/** Queues the new state of revisions for all replicas. */
export function notified(world: World): World {
  const wanted = wantedOf(world.revisions);
  const replicas = world.replicas.map((replica) =>
    isSame(replica.coming.at(-1) ?? replica.sees, wanted)
      ? replica
      : { ...replica, coming: [...replica.coming, wanted] },
  );
  return { ...world, replicas };
}

function wantedOf(revisions: readonly Revision[]): Wanted {
  const [serving] = revisions
    .filter(({ state }) => state === 'Serving')
    .toSorted((a, b) => b.order - a.order || b.n - a.n);
  const staged = revisions.filter(({ state }) => state === 'Validated' || state === 'Staged').map(({ n }) => n);
  const newest = revisions.at(-1);
  const isFailed = newest?.state === 'Failed' || (newest?.state === 'Candidate' && newest.reason !== '');
  const [lastWord] = revisions
    .filter(({ state, reason }) => state === 'Retired' && (reason === DEGRADED_REJECTED || reason === DISARMED))
    .toSorted((a, b) => b.order - a.order);
  const isLast = revisions.every((one) => !staged.includes(one.n) || one.order < (lastWord?.order ?? 0));
  const served = isLast ? lastWord : undefined;
  // A first revision that no replica can load, where unserved policies reject.
  const isStuck = newest !== undefined && staged.includes(newest.n) && newest.order === 0 && newest.isEnforced;
  const failed = serving === undefined && (served !== undefined || isStuck || (staged.length === 0 && isFailed));
  const inForce = serving ?? (failed ? (served ?? newest) : undefined);
  const isDisarmed = inForce?.reason === DISARMED;
  const isEnforced =
    !isDisarmed && inForce?.isEnforced === true && (serving !== undefined || newest?.isEnforced === true);
  const answering = isEnforced ? inForce : undefined;
  return {
    serving: serving?.n ?? 0,
    order: serving?.order ?? 0,
    staged,
    failed,
    isDisarmed,
    answering: answering?.n ?? 0,
    otherwise: answering === undefined ? 'nothing' : failurePolicyOf(answering.spec),
  };
}

/** What a spec says about requests while it is not loaded. */
export function failurePolicyOf(spec: Spec): 'rejected' | 'admitted' {
  return spec === spec.toUpperCase() ? 'admitted' : 'rejected';
}

/** Whether a replica needs to fetch nothing for a revision: it has loaded one that evaluates the same. */
export function isShared({ revisions }: World, { loaded }: Replica, n: number): boolean {
  const of = (number: number): string => {
    const one = revisions.find((other) => other.n === number);
    return `${one?.spec.toLowerCase()} ${one?.tag}`;
  };
  return loaded.some((other) => of(other) === of(n));
}

/** A replica that has just started and read the revisions. */
export function newReplica(name: string, revisions: readonly Revision[]): Replica {
  const sees = wantedOf(revisions);
  return { name, state: 'connected', sees, coming: [], loaded: [], failed: [], serves: 0, order: 0 };
}

/** The world after all deadlines and delays. Replicas retry failed loads. */
export function afterDeadlines(world: World): World {
  const old = (list: readonly Revision[]): Revision[] => list.map((one) => ({ ...one, late: true }));
  return {
    ...world,
    revisions: old(world.revisions),
    controllers: world.controllers.map((belief) => ({ ...belief, revisions: old(belief.revisions) })),
    replicas: world.replicas.map((replica) => ({ ...replica, failed: [] })),
  };
}

/** Whether two worlds, or parts of them, are equal. */
export function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
