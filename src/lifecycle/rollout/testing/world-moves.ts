// The moves of users, time and faults.
import { act, controllerMoves } from './controller-moves.ts';
import { replicaMoves, switchedReplica, unloaded } from './replica-moves.ts';
import {
  type Belief,
  isSame,
  isShared,
  afterDeadlines,
  type Move,
  newReplica,
  type Replica,
  type Rules,
  type World,
} from './rollout-world.ts';

/** All possible next moves. */
export function moves(world: World, rules: Rules): Move[] {
  return [
    ...userMoves(world),
    ...world.controllers.flatMap((_, index) => controllerMoves(world, index, rules)),
    ...world.replicas.flatMap((_, index) => replicaMoves(world, index)),
    ...timeMoves(world),
    ...leaderMoves(world),
    ...(world.budget.faults > 0 ? faultMoves(world, rules) : []),
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
  const [isDisarmed, ...disarms] = budget.disarms;
  const byDisarming =
    isDisarmed === undefined
      ? []
      : [
          {
            name: isDisarmed ? 'disarm' : 'rearm',
            world: { ...world, policy: { ...policy, isDisarmed }, budget: { ...budget, disarms } },
          },
        ];
  const byRefresh = {
    name: 'refresh',
    world: {
      ...world,
      policy: { ...policy, refresh: policy.refresh + 1 },
      budget: { ...budget, refreshes: budget.refreshes - 1 },
    },
  };
  const byTag = {
    name: 'the tag moves',
    world: { ...world, tag: world.tag + 1, budget: { ...budget, tags: budget.tags - 1 } },
  };
  return [
    ...bySpec,
    ...byPin,
    ...byDisarming,
    ...(budget.refreshes > 0 ? [byRefresh] : []),
    ...(budget.tags > 0 ? [byTag] : []),
  ];
}

function timeMoves(world: World): Move[] {
  const { budget } = world;
  return budget.ticks === 0
    ? []
    : [{ name: 'time passes', world: afterDeadlines({ ...world, budget: { ...budget, ticks: budget.ticks - 1 } }) }];
}

/** The next leader reads the API server, while the last write of the previous one may still arrive. */
function leaderMoves(world: World): Move[] {
  const { budget, controllers, policy, revisions, covered } = world;
  const [first] = controllers;
  if (budget.leaders === 0 || first === undefined) {
    return [];
  }
  const next: Belief = { policy, revisions, covered, replicas: undefined };
  const rest = { ...budget, leaders: budget.leaders - 1 };
  return [
    { name: 'another leader', world: { ...world, controllers: [next, { ...first, isFormer: true }], budget: rest } },
  ];
}

function faultMoves(world: World, { faults }: Rules): Move[] {
  const after: World = { ...world, budget: { ...world.budget, faults: world.budget.faults - 1 } };
  const ofReplicas = world.replicas.flatMap((replica, index): Move[] => {
    const { name, state, failed } = replica;
    const put = (next: Replica): World => ({ ...after, replicas: world.replicas.with(index, next) });
    const loads = unfetched(world, replica).map((n) => ({
      name: `${name} fails to load ${n}`,
      world: put(switchedReplica({ ...replica, failed: [...failed, n] })),
    }));
    const gone = { ...after, replicas: world.replicas.toSpliced(index, 1) };
    return [
      ...(faults.has('load') ? loads : []),
      ...(faults.has('cut') && state === 'connected'
        ? [{ name: `${name} disconnects`, world: put({ ...replica, state: 'lost' }) }]
        : []),
      ...(faults.has('restart') ? [{ name: `${name} restarts`, world: put(newReplica(name, world.revisions)) }] : []),
      ...(faults.has('leave') ? [{ name: `${name} leaves`, world: gone }] : []),
    ];
  });
  return [...ofReplicas, ...(faults.has('join') ? [join(after)] : [])];
}

/** Revisions that a replica has to fetch. */
function unfetched(world: World, replica: Replica): readonly number[] {
  return unloaded(replica).filter((n) => !isShared(world, replica, n));
}

/** A replica creates its object before it serves, so controllers know it before it connects. */
function join(world: World): Move {
  const joined = newReplica(`r${world.replicas.length}`, world.revisions);
  const controllers = world.controllers.map((belief) =>
    belief.replicas === undefined
      ? belief
      : { ...belief, replicas: [...belief.replicas, { ...joined, state: 'connecting' as const }] },
  );
  return { name: 'a replica joins', world: { ...world, replicas: [...world.replicas, joined], controllers } };
}

/**
 * The next move once faults and changes have ended and one controller is left; undefined if nothing changes any more.
 */
export function settle(world: World, rules: Rules): World | undefined {
  const { policy, revisions, covered, replicas } = world;
  const ended: World = {
    ...world,
    budget: { specs: [], pins: [], disarms: [], refreshes: 0, tags: 0, ticks: 0, faults: 0, leaders: 0 },
    replicas: replicas.map((replica) => (replica.state === 'connected' ? replica : { ...replica, state: 'connected' })),
    controllers: [],
  };
  for (const [index, replica] of ended.replicas.entries()) {
    const [lost] = rules.isDown === true && replica.coming.length === 0 ? unfetched(ended, replica) : [];
    if (lost !== undefined) {
      const failed = switchedReplica({ ...replica, failed: [...replica.failed, lost] });
      return { ...ended, replicas: ended.replicas.with(index, failed), controllers: [] };
    }
    const [next] = replicaMoves(ended, index);
    if (next !== undefined) {
      return next.world;
    }
  }
  const alone: World = { ...ended, controllers: [{ policy, revisions, covered, replicas: ended.replicas }] };
  const [done] = act(alone, 0, rules);
  if (done !== undefined) {
    return done.world;
  }
  const waited = rules.isDown === true ? { ...afterDeadlines(alone), replicas: alone.replicas } : afterDeadlines(alone);
  return isSame(waited, alone) ? undefined : waited;
}
