// A small world in which one policy is rolled out: an API server, controllers whose caches are behind, replicas whose watches
// are. All of it is plain data, and every way in which it can go on is one function away.
import type { AdmissionPolicySpec, PolicyStatus, RevisionState } from '../../../resources/index.ts';
import { afterPrevalidation } from '../after-prevalidation.ts';
import { planRollout } from '../plan-rollout.ts';
import { policyStatus } from '../policy-status.ts';
import type { ReplicaFacts, RevisionFacts, RolloutSettings, RolloutStep, RolloutView } from '../rollout-view.ts';

/** Specs are letters. `a`, `b`, `c` can serve; `x` can never; `f` cannot be fetched as long as there is a fault left. */
export type Spec = 'a' | 'b' | 'c' | 'x' | 'f';

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

interface Replica {
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
interface Belief {
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

const NOW = 1_000_000;
const DEADLINE_MS = 1_000;
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

/** What a controller plans from what it believes. */
export function viewOf(belief: Belief, { settings, hasOrders }: Rules): RolloutView {
  return {
    now: NOW,
    generation: 1,
    spec: specOf(belief.policy.spec),
    pin: belief.policy.pin === 0 ? undefined : belief.policy.pin,
    settings,
    revisions: belief.revisions.map(revisionFacts),
    replicas: belief.replicas?.map((replica) => replicaFacts(replica, hasOrders)),
    hasPolicyServer: true,
    isAsked: belief.asked !== '',
    phase: belief.policy.status?.phase,
  };
}

const SPECS = new Map<Spec, AdmissionPolicySpec>();
function specOf(spec: Spec): AdmissionPolicySpec {
  const known = SPECS.get(spec) ?? ({ module: spec, policyServer: 'default' } as unknown as AdmissionPolicySpec);
  SPECS.set(spec, known);
  return known;
}

function revisionFacts({ n, spec, state, reason, order, isPinned, attempts, retries, late }: Revision): RevisionFacts {
  return {
    number: n,
    state,
    reason,
    message: reason,
    modules: isPinned ? [{ name: 'p', module: spec, digest: 'builtin:p@1' }] : [],
    attempts,
    nextRetry: retries ? NOW + (late ? -1 : 1) : undefined,
    stateSince: late ? NOW - DEADLINE_MS : NOW,
    order,
    snapshot: specOf(spec),
  };
}

function replicaFacts({ name, state, sees, loaded, failed, serves, order }: Replica, hasOrders: boolean): ReplicaFacts {
  const revisions = new Map<number, { state: 'Loading' | 'Staged' | 'Serving' | 'Failed'; order?: number }>();
  for (const n of state === 'connected' ? [...sees.staged, sees.serving, serves] : []) {
    if (n !== 0) {
      const beside = loaded.includes(n) ? 'Staged' : failed.includes(n) ? 'Failed' : 'Loading';
      revisions.set(n, n === serves ? { state: 'Serving', ...(hasOrders ? { order } : {}) } : { state: beside });
    }
  }
  const told = [...revisions].map(
    ([n, report]) =>
      [
        n,
        { ...report, reason: report.state === 'Failed' ? 'FetchFailed' : '', message: '', nextRetry: undefined },
      ] as const,
  );
  return { name, state, revisions: new Map(told) };
}

/** Everything that can happen next. */
export function moves(world: World, rules: Rules): Move[] {
  return [
    ...userMoves(world),
    ...world.controllers.flatMap((_, index) => controllerMoves(world, index, rules)),
    ...world.replicas.flatMap((_, index) => replicaMoves(world, index)),
    ...faultMoves(world, rules),
  ];
}

function userMoves(world: World): Move[] {
  const { policy, budget } = world;
  const [spec, ...specs] = budget.specs;
  const [pin, ...pins] = budget.pins;
  const bySpec =
    spec === undefined
      ? []
      : [{ name: `apply ${spec}`, world: { ...world, policy: { ...policy, spec }, budget: { ...budget, specs } } }];
  const byPin =
    pin === undefined
      ? []
      : [{ name: `pin ${pin}`, world: { ...world, policy: { ...policy, pin }, budget: { ...budget, pins } } }];
  return [...bySpec, ...byPin];
}

/** A controller hears what is new, or does one thing. The last of several writes without knowing that it is the last. */
function controllerMoves(world: World, index: number, rules: Rules): Move[] {
  const belief = world.controllers[index];
  if (belief === undefined) {
    return [];
  }
  const { policy, revisions, asked, replicas } = world;
  const news: (readonly [string, Partial<Belief>])[] = rules.hasSeparateCaches
    ? [
        ['policy', { policy }],
        ['revisions', { revisions, asked }],
        ['replicas', { replicas }],
      ]
    : [['all', { policy, revisions, asked, replicas }]];
  const heard = news.map(([what, part]) => ({
    name: `controller ${index} hears of ${what}`,
    world: believe(world, index, part),
  }));
  if (belief.isFormer !== true) {
    return [...heard, ...act(world, index, rules)];
  }
  return act(world, index, rules).map((move) => ({ ...move, world: without(move.world, index) }));
}

function without(world: World, index: number): World {
  return { ...world, controllers: world.controllers.toSpliced(index, 1) };
}

function believe(world: World, index: number, part: Partial<Belief>): World {
  const controllers = world.controllers.map((belief, at) => (at === index ? { ...belief, ...part } : belief));
  return { ...world, controllers };
}

/** The first step of the plan that has something to write; else the status. A trial may end now, or still be under way. */
export function act(world: World, index: number, rules: Rules): Move[] {
  const belief = world.controllers[index];
  if (belief === undefined) {
    return [];
  }
  const view = viewOf(belief, rules);
  const done: Move[] = [];
  for (const step of rules.plan(view).steps) {
    const ends = take(world, index, belief, step, rules);
    done.push(...ends.map((next) => ({ name: `controller ${index}: ${JSON.stringify(step)}`, world: next })));
    if (ends.length > 0 && step.type !== 'prevalidate') {
      return done;
    }
  }
  const { conditions: _, message: __, ...status } = policyStatus(view, {}, belief.policy.status, NOW);
  if (JSON.stringify(status) !== JSON.stringify(belief.policy.status)) {
    const policy = { ...world.policy, status };
    const next = isSame(belief.policy, world.policy)
      ? believe({ ...world, policy }, index, { policy })
      : believe(world, index, { policy: world.policy });
    done.push({ name: `controller ${index} says ${status.phase} ${status.reason}`, world: next });
  }
  return done;
}

/** What may come of a step; nothing when there is nothing to write. Whoever writes of what has changed since is refused. */
function take(world: World, index: number, belief: Belief, step: RolloutStep, rules: Rules): World[] {
  const conflict = (): World[] => [believe(world, index, { revisions: world.revisions, asked: world.asked })];
  const write = (n: number, change: Partial<Revision>): World[] => {
    const believed = belief.revisions.find((one) => one.n === n);
    const actual = world.revisions.find((one) => one.n === n);
    if (actual === undefined || !isSame(believed, actual)) {
      return conflict();
    }
    const late = change.state === actual.state && actual.late && change.retries !== true;
    const next = { ...actual, retries: false, ...change, late };
    const replace = (list: readonly Revision[]): Revision[] => list.map((one) => (one.n === n ? next : one));
    return [
      told(believe({ ...world, revisions: replace(world.revisions) }, index, { revisions: replace(belief.revisions) })),
    ];
  };
  switch (step.type) {
    case 'create': {
      if (world.revisions.some(({ n }) => n === step.revision)) {
        return conflict();
      }
      const { spec } = belief.policy;
      const made: Revision = {
        n: step.revision,
        spec,
        state: 'Candidate',
        reason: '',
        order: 0,
        isPinned: false,
        attempts: 0,
        retries: false,
        late: false,
      };
      const added = { ...world, revisions: [...world.revisions, made] };
      return [told(believe(added, index, { revisions: [...belief.revisions, made] }))];
    }
    case 'prevalidate': {
      const revision = belief.revisions.find(({ n }) => n === step.revision);
      return revision === undefined
        ? []
        : trials(world, revision, rules).flatMap(({ budget, change }) =>
            write(step.revision, change).map((next) => ({ ...next, budget })),
          );
    }
    case 'transition':
      return write(step.revision, {
        state: step.to,
        reason: step.reason,
        ...(step.order === undefined ? {} : { order: step.order }),
      });
    case 'widen':
    case 'enforce': {
      const numbers = step.type === 'widen' ? step.revisions : [step.revision];
      const specs = numbers.map((n) => belief.revisions.find((one) => one.n === n)?.spec ?? belief.policy.spec);
      const asked = [...new Set(specs)].toSorted().join('');
      if (asked === belief.asked) {
        return [];
      }
      return belief.asked === world.asked ? [believe({ ...world, asked }, index, { asked })] : conflict();
    }
    case 'delete': {
      const [n] = step.revisions;
      if (
        !isSame(
          belief.revisions.find((one) => one.n === n),
          world.revisions.find((one) => one.n === n),
        )
      ) {
        return conflict();
      }
      const without = (list: readonly Revision[]): Revision[] => list.filter((one) => one.n !== n);
      return [
        told(
          believe({ ...world, revisions: without(world.revisions) }, index, { revisions: without(belief.revisions) }),
        ),
      ];
    }
    default:
      return step satisfies never;
  }
}

/** How a trial may end. */
function trials(
  { budget }: World,
  { spec, attempts }: Revision,
  { faults }: Rules,
): { budget: Budget; change: Partial<Revision> }[] {
  const change = (result: Parameters<typeof afterPrevalidation>[1]): Partial<Revision> => {
    const { state, reason, modules, nextRetry } = afterPrevalidation({ attempts: 0 }, result, NOW, () => 0);
    return {
      state,
      reason,
      isPinned: modules.length > 0,
      attempts: Math.min(1, attempts + 1),
      retries: nextRetry !== undefined,
    };
  };
  if (spec === 'x') {
    return [{ budget, change: change({ ok: false, reason: 'InvalidSettings', message: '', isTransient: false }) }];
  }
  const good = { budget, change: change({ ok: true, modules: [{ name: 'p', module: spec, digest: 'builtin:p@1' }] }) };
  const failed = change({ ok: false, reason: 'FetchFailed', message: '', isTransient: true });
  return faults.has('fetch') && budget.faults > 0
    ? [good, { budget: { ...budget, faults: budget.faults - 1 }, change: failed }]
    : [good];
}

/** Everybody who watches revisions is about to hear of them. */
function told(world: World): World {
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

function newReplica(name: string, revisions: readonly Revision[]): Replica {
  const sees = wantedOf(revisions);
  return { name, state: 'connected', sees, coming: [], loaded: [], failed: [], serves: 0, order: 0 };
}

/** A replica reads the next thing that it was told, or ends a load. */
function replicaMoves(world: World, index: number): Move[] {
  const replica = world.replicas[index];
  if (replica === undefined) {
    return [];
  }
  const { name, sees, coming, loaded, failed } = replica;
  const put = (next: Replica): World => ({ ...world, replicas: world.replicas.with(index, swapped(next)) });
  const [next, ...rest] = coming;
  const read =
    next === undefined
      ? []
      : [{ name: `${name} reads ${JSON.stringify(next)}`, world: put({ ...replica, sees: next, coming: rest }) }];
  const open = [...new Set([...sees.staged, sees.serving])].filter(
    (n) => n !== 0 && !loaded.includes(n) && !failed.includes(n),
  );
  const loads = open.map((n) => ({ name: `${name} loads ${n}`, world: put({ ...replica, loaded: [...loaded, n] }) }));
  return [...read, ...loads];
}

/** What it is told to serve it serves once it is loaded; what it has no use for it lets go. */
function swapped(replica: Replica): Replica {
  const { sees, loaded, failed } = replica;
  const isThere = sees.serving !== 0 && loaded.includes(sees.serving);
  const serves = isThere ? sees.serving : sees.failed ? 0 : replica.serves;
  const order = isThere ? sees.order : serves === 0 ? 0 : replica.order;
  const used = new Set([...sees.staged, sees.serving, serves]);
  const keep = (list: readonly number[]): number[] => list.filter((n) => used.has(n)).toSorted((a, b) => a - b);
  return { ...replica, serves, order, loaded: keep(loaded), failed: keep(failed) };
}

function faultMoves(world: World, rules: Rules): Move[] {
  const { budget, controllers, replicas } = world;
  const found: Move[] = [];
  if (budget.ticks > 0) {
    found.push({ name: 'time passes', world: later({ ...world, budget: { ...budget, ticks: budget.ticks - 1 } }) });
  }
  const [first] = controllers;
  if (budget.leaders > 0 && first !== undefined) {
    // It begins with what the API server says, while the last write of the one before may be on its way.
    const { policy, revisions, asked } = world;
    const follower: Belief = { policy, revisions, asked, replicas: undefined };
    const rest = { ...budget, leaders: budget.leaders - 1 };
    found.push({ name: 'the leader ends with a write on its way, another one begins', world: { ...world, controllers: [follower, { ...first, isFormer: true }], budget: rest } });
    found.push({
      name: 'the leader ends, another one begins',
      world: { ...world, controllers: [follower], budget: rest },
    });
  }
  if (budget.faults === 0) {
    return found;
  }
  const after: Budget = { ...budget, faults: budget.faults - 1 };
  const put = (index: number, next: Replica): World => ({
    ...world,
    replicas: replicas.with(index, next),
    budget: after,
  });
  for (const [index, replica] of replicas.entries()) {
    const { name, state, sees, loaded, failed } = replica;
    const open = [...new Set([...sees.staged, sees.serving])].filter(
      (n) => n !== 0 && !loaded.includes(n) && !failed.includes(n),
    );
    if (rules.faults.has('load')) {
      found.push(
        ...open.map((n) => ({
          name: `${name} fails to load ${n}`,
          world: put(index, swapped({ ...replica, failed: [...failed, n] })),
        })),
      );
    }
    if (rules.faults.has('cut') && state === 'connected') {
      found.push({ name: `${name} is cut off`, world: put(index, { ...replica, state: 'lost' }) });
    }
    if (rules.faults.has('restart')) {
      found.push({ name: `${name} restarts`, world: put(index, newReplica(name, world.revisions)) });
    }
    if (rules.faults.has('leave')) {
      found.push({
        name: `${name} is gone`,
        world: { ...world, replicas: replicas.toSpliced(index, 1), budget: after },
      });
    }
  }
  if (rules.faults.has('join')) {
    // It makes its object before it serves: controllers know of it at once, and hear it later.
    const joined = newReplica(`r${replicas.length}`, world.revisions);
    const known = controllers.map((belief) =>
      belief.replicas === undefined
        ? belief
        : { ...belief, replicas: [...belief.replicas, { ...joined, state: 'connecting' as const }] },
    );
    found.push({
      name: 'a replica begins',
      world: { ...world, replicas: [...replicas, joined], controllers: known, budget: after },
    });
  }
  return found;
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

/** The faults end, nobody changes anything any more, one controller is left: the next thing that happens. */
export function calm(world: World, rules: Rules): World | undefined {
  const { policy, revisions, asked, replicas } = world;
  const ended: World = {
    ...world,
    budget: { specs: [], pins: [], ticks: 0, faults: 0, leaders: 0 },
    replicas: replicas.map((replica) => (replica.state === 'connected' ? replica : { ...replica, state: 'connected' })),
    controllers: [],
  };
  for (const index of ended.replicas.keys()) {
    const [next] = replicaMoves(ended, index);
    if (next !== undefined) {
      return next.world;
    }
  }
  const alone: World = { ...ended, controllers: [{ policy, revisions, asked, replicas: ended.replicas }] };
  const [done] = act(alone, 0, rules);
  if (done !== undefined) {
    return done.world;
  }
  const waited = later(alone);
  return isSame(waited, alone) ? undefined : waited;
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
