// A small world in which one policy is rolled out: an API server, controllers whose caches are behind, replicas whose watches
// are. All of it is plain data; nothing in it is changed, what happens makes another one.
import type { PolicyStatus, RevisionState } from '../../../resources/index.ts';
import type { planRollout } from '../plan-rollout.ts';
import type { RolloutSettings } from '../rollout-view.ts';

/** Specs are letters. `a`, `b`, `c` can serve; `x` can never; `f` cannot be fetched as long as there is a fault left. */
export const SPECS = ['a', 'b', 'c', 'x', 'f'] as const;
export type Spec = (typeof SPECS)[number];

export interface Revision {
  readonly n: number;
  readonly spec: Spec;
  readonly state: RevisionState;
  readonly reason: string;
  readonly order: number;
  readonly isPinned: boolean;
  readonly attempts: number;
  readonly retries: boolean;
  /** Whether deadlines and retries that count from its last write are over. */
  readonly late: boolean;
}

export interface Policy {
  readonly spec: Spec;
  readonly pin: number;
  /** What users read. */
  readonly status: PolicyStatus | undefined;
}

/** What revisions tell a replica: which serves by which order, which are to be staged, whether nothing is to serve. */
interface Wanted {
  readonly serving: number;
  readonly order: number;
  readonly staged: readonly number[];
  readonly failed: boolean;
}

export interface Replica {
  readonly name: string;
  readonly state: 'connecting' | 'connected' | 'lost';
  /** What it was told, and what is on its way to it, in order. */
  readonly sees: Wanted;
  readonly coming: readonly Wanted[];
  readonly loaded: readonly number[];
  readonly failed: readonly number[];
  readonly serves: number;
  readonly order: number;
}

/** What a controller believes; each of its caches may be behind. */
export interface Belief {
  readonly policy: Policy;
  readonly revisions: readonly Revision[];
  /** Specs that the API server asks for. */
  readonly asked: string;
  /** Undefined: it has just begun. */
  readonly replicas: readonly Replica[] | undefined;
  /** Not the leader any more: what it had decided before may still be written. */
  readonly isFormer?: true;
}

/** What may still happen. */
export interface Budget {
  readonly specs: readonly Spec[];
  /** Pins to come; 0 unpins. */
  readonly pins: readonly number[];
  /** How often time passes beyond every deadline. */
  readonly ticks: number;
  /** Loads and fetches that fail, replicas that are cut off, end, begin. */
  readonly faults: number;
  /** Leaders that follow on others. */
  readonly leaders: number;
}

export interface World {
  readonly policy: Policy;
  readonly revisions: readonly Revision[];
  readonly asked: string;
  readonly replicas: readonly Replica[];
  readonly controllers: readonly Belief[];
  readonly budget: Budget;
}

export interface Rules {
  readonly settings: RolloutSettings;
  /** Whether each cache of a controller gets on by itself. */
  readonly hasSeparateCaches: boolean;
  /** Faults that there are. */
  readonly faults: ReadonlySet<'load' | 'fetch' | 'cut' | 'restart' | 'leave' | 'join'>;
  readonly plan: typeof planRollout;
  /** Whether replicas say by which order they serve. */
  readonly hasOrders: boolean;
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
};

/** A policy that was applied just now. */
export function newWorld(spec: Spec, replicas: number, budget: Partial<Budget>): World {
  const policy: Policy = { spec, pin: 0, status: undefined };
  const begun = Array.from({ length: replicas }, (_, index) => newReplica(`r${index}`, []));
  const belief: Belief = { policy, revisions: [], asked: '', replicas: begun };
  const none: Budget = { specs: [], pins: [], ticks: 0, faults: 0, leaders: 0 };
  return { policy, revisions: [], asked: '', replicas: begun, controllers: [belief], budget: { ...none, ...budget } };
}

/** Everybody who watches revisions is about to hear of them. */
export function told(world: World): World {
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
  return {
    serving: serving?.n ?? 0,
    order: serving?.order ?? 0,
    staged,
    failed: serving === undefined && staged.length === 0 && isFailed,
  };
}

/** One that has just begun, and read revisions. */
export function newReplica(name: string, revisions: readonly Revision[]): Replica {
  const sees = wantedOf(revisions);
  return { name, state: 'connected', sees, coming: [], loaded: [], failed: [], serves: 0, order: 0 };
}

/** Deadlines and waits are over, for everybody. What replicas could not load they try again. */
export function later(world: World): World {
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
