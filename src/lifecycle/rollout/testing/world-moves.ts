// What else happens in a small world: what users want, and what goes wrong.
import { act, controllerMoves } from './controller-moves.ts';
import { replicaMoves, swapped, unloaded } from './replica-moves.ts';
import {
  type Belief,
  isSame,
  later,
  type Move,
  newReplica,
  type Replica,
  type Rules,
  type World,
} from './rollout-world.ts';

/** Everything that can happen next. */
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
  return [...bySpec, ...byPin];
}

function timeMoves(world: World): Move[] {
  const { budget } = world;
  return budget.ticks === 0
    ? []
    : [{ name: 'time passes', world: later({ ...world, budget: { ...budget, ticks: budget.ticks - 1 } }) }];
}

/** The next leader begins with what the API server says, while the last write of the one before may be on its way. */
function leaderMoves(world: World): Move[] {
  const { budget, controllers, policy, revisions, asked } = world;
  const [first] = controllers;
  if (budget.leaders === 0 || first === undefined) {
    return [];
  }
  const next: Belief = { policy, revisions, asked, replicas: undefined };
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
    const loads = unloaded(replica).map((n) => ({
      name: `${name} fails to load ${n}`,
      world: put(swapped({ ...replica, failed: [...failed, n] })),
    }));
    const gone = { ...after, replicas: world.replicas.toSpliced(index, 1) };
    return [
      ...(faults.has('load') ? loads : []),
      ...(faults.has('cut') && state === 'connected'
        ? [{ name: `${name} is cut off`, world: put({ ...replica, state: 'lost' }) }]
        : []),
      ...(faults.has('restart')
        ? [{ name: `${name} begins anew`, world: put(newReplica(name, world.revisions)) }]
        : []),
      ...(faults.has('leave') ? [{ name: `${name} is gone`, world: gone }] : []),
    ];
  });
  return [...ofReplicas, ...(faults.has('join') ? [join(after)] : [])];
}

/** It makes its object before it serves: controllers know of it at once, and hear it later. */
function join(world: World): Move {
  const joined = newReplica(`r${world.replicas.length}`, world.revisions);
  const controllers = world.controllers.map((belief) =>
    belief.replicas === undefined
      ? belief
      : { ...belief, replicas: [...belief.replicas, { ...joined, state: 'connecting' as const }] },
  );
  return { name: 'a replica begins', world: { ...world, replicas: [...world.replicas, joined], controllers } };
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
