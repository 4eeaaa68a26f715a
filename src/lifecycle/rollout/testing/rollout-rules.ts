// The rules of rollouts as checks of a small world.
import type { RolloutSettings } from '../rollout-view.ts';
import { type Move, type Policy, type Rules, SPECS, type World } from './rollout-world.ts';

/** What a move of the world breaks; undefined when it is as it must be. */
export function brokenBy({ settings }: Rules): (before: World, move: Move) => string | undefined {
  const isServing = settings.degraded === 'Serve';
  return (before, { world }) =>
    [
      isServing ? servingIsKept(before, world) : undefined,
      onlyGoodServes(world),
      flipIsPrepared(before, world, settings),
      askedIsKept(before, world),
      narrowingIsDue(before, world),
      verdictsAreNotMixed(world),
      activeIsTrue(before, world),
      revisionsAreKept(before, world),
    ].find((problem) => problem !== undefined);
}

/** Nothing that served stops serving because something newer is wrong. */
function servingIsKept(before: World, after: World): string | undefined {
  if (
    before.revisions.some(({ state }) => state === 'Serving') &&
    !after.revisions.some(({ state }) => state === 'Serving')
  ) {
    return 'no revision serves any more';
  }
  const stopped = before.replicas.find(({ name, serves }, index) => {
    const now = after.replicas[index];
    // One that begins anew has nothing yet.
    return serves !== 0 && now?.name === name && now.serves === 0 && now.loaded.length > 0;
  });
  return stopped === undefined ? undefined : `${stopped.name} serves nothing any more`;
}

/** What was not tried and pinned does not serve. */
function onlyGoodServes({ revisions }: World): string | undefined {
  const bad = revisions.find(({ state, spec, isPinned }) => state === 'Serving' && (!isPinned || spec === 'x'));
  return bad === undefined ? undefined : `revision ${bad.n} was not validated, and serves`;
}

/** A revision begins to serve when replicas have loaded it, and when the API server asks for what it and the last one are for. */
function flipIsPrepared(before: World, { revisions }: World, { strategy }: RolloutSettings): string | undefined {
  const serving = before.revisions.find(({ state }) => state === 'Serving');
  const flipped = revisions.find(
    ({ n, state }) => state === 'Serving' && before.revisions.find((one) => one.n === n)?.state !== 'Serving',
  );
  const was = before.revisions.find(({ n }) => n === flipped?.n);
  if (flipped === undefined || was === undefined) {
    return undefined;
  }
  const isLate = was.late && strategy === 'Available';
  const isLoaded = before.controllers.some(({ replicas = [] }) => {
    const has = replicas.filter(({ state, loaded }) => state === 'connected' && loaded.includes(flipped.n));
    return has.length > 0 && (has.length === replicas.length || isLate);
  });
  if (!isLoaded) {
    return `revision ${flipped.n} is to serve, and replicas have not loaded it`;
  }
  // By what the controller knows: the last write of the leader before may have narrowed it again, for a moment.
  const asks = before.controllers.map((belief) => belief.asked);
  const isAsked =
    serving === undefined || asks.some((asked) => [serving, flipped].every(({ spec }) => asked.includes(spec)));
  return isAsked ? undefined : `revision ${flipped.n} is to serve, and the API server asks for ${before.asked}`;
}

/** The API server does not cease to ask, and is asked for what serves before it does. */
function askedIsKept(before: World, after: World): string | undefined {
  return before.asked !== '' && after.asked === '' ? 'the API server asks no more' : undefined;
}

/** What the last revision was asked beyond the next is asked until replicas have changed over, cannot, or had long enough to. */
function narrowingIsDue(before: World, { asked }: World): string | undefined {
  const serving = before.revisions.filter(({ state }) => state === 'Serving').toSorted((a, b) => b.order - a.order)[0];
  const isNarrower = SPECS.some((spec) => before.asked.includes(spec) && !asked.includes(spec));
  if (serving === undefined || serving.late || !isNarrower) {
    return undefined;
  }
  // By what the controller knows.
  const isDue = before.controllers.some(({ replicas = [] }) =>
    replicas.every(
      ({ state, serves, failed }) => state !== 'connected' || serves === serving.n || failed.includes(serving.n),
    ),
  );
  return isDue ? undefined : `the API server asks for ${asked} only, and replicas answer for ${before.asked}`;
}

function isAtRest({ status }: Policy): boolean {
  return status?.phase === 'Active' || status?.phase === 'RolledBack';
}

/** Replicas answer by different revisions only while users are told so. */
function verdictsAreNotMixed({ policy, replicas }: World): string | undefined {
  const answers = new Set(replicas.map(({ serves }) => serves).filter((n) => n !== 0));
  return isAtRest(policy) && answers.size > 1
    ? `${policy.status?.phase}, and replicas serve ${[...answers].join(', ')}`
    : undefined;
}

/** Who says Active has seen it: every replica serves what was desired, and the API server asks about just that. */
function activeIsTrue(before: World, { policy, controllers, revisions, asked }: World): string | undefined {
  if (before.policy === policy || !isAtRest(policy) || before.policy.status === policy.status) {
    return undefined;
  }
  const { desiredRevision = 0, servingRevision, readyReplicas, totalReplicas = 0 } = policy.status ?? {};
  if (servingRevision !== desiredRevision || readyReplicas !== totalReplicas || totalReplicas === 0) {
    return `${policy.status?.phase} with ${JSON.stringify(policy.status)}`;
  }
  const believer =
    controllers.find((belief) => belief.policy === policy) ?? before.controllers.find(({ isFormer }) => isFormer);
  const unlike = believer?.replicas?.find(({ serves, state }) => serves !== desiredRevision || state !== 'connected');
  if (believer === undefined || unlike !== undefined) {
    return `${policy.status?.phase}, and ${unlike?.name ?? 'nobody'} does not serve ${desiredRevision}`;
  }
  // Who overlaps with another leader may not know of its last write yet, but of the policy: it is of this version.
  const served = revisions.find(({ n }) => n === desiredRevision);
  const isDeclared = policy.pin === 0 || policy.status?.phase === 'Active';
  if (
    served === undefined ||
    (isDeclared && served.spec !== policy.spec) ||
    (policy.pin !== 0 && served.n !== policy.pin)
  ) {
    return `${policy.status?.phase} with revision ${desiredRevision}, which is not the desired one`;
  }
  return believer.asked.includes(served.spec)
    ? undefined
    : `${policy.status?.phase}, and the API server asks for ${asked}`;
}

/** Numbers only grow; what serves or is desired stays. */
function revisionsAreKept(before: World, after: World): string | undefined {
  const numbers = after.revisions.map(({ n }) => n);
  if (
    numbers.some((n, index) => index > 0 && n <= (numbers[index - 1] ?? 0)) ||
    (numbers.at(-1) ?? 0) < (before.revisions.at(-1)?.n ?? 0)
  ) {
    return `revisions ${numbers.join(', ')}`;
  }
  // A pin that a controller has not heard of comes too late.
  const isPinned = (number: number): boolean => before.controllers.every((belief) => belief.policy.pin === number);
  const lost = before.revisions.find(({ n, state }) => (state === 'Serving' || isPinned(n)) && !numbers.includes(n));
  return lost === undefined ? undefined : `revision ${lost.n} is lost`;
}

/** What is wrong with a world in which nobody has anything left to do. */
export function unsettledBy({ settings }: Rules): (world: World) => string | undefined {
  return ({ policy, revisions, replicas, asked }) => {
    const { phase = 'none', reason } = policy.status ?? {};
    const newest = revisions.at(-1);
    const isPinFound = revisions.some(({ n }) => n === policy.pin);
    const desired = policy.pin === 0 ? newest : revisions.find(({ n }) => n === policy.pin);
    const serving = revisions.filter(({ state }) => state === 'Serving');
    const answers = new Set(replicas.map(({ serves }) => serves));
    const isBad = desired === undefined || desired.state === 'Failed';
    const expected =
      replicas.length === 0
        ? ['Pending', 'Error']
        : isBad
          ? [serving.length > 0 ? 'Degraded' : 'Error']
          : [policy.pin === 0 || desired === newest ? 'Active' : 'RolledBack'];
    const problems = [
      newest?.spec === policy.spec ? undefined : 'the spec has no revision',
      expected.includes(phase) ? undefined : `expected ${expected.join(' or ')}, got ${phase} (${reason})`,
      serving.length <= 1 ? undefined : `${serving.length} revisions serve`,
      replicas.length === 0 || answers.size === 1 ? undefined : 'replicas differ',
      replicas.length === 0 || answers.has(serving[0]?.n ?? 0) ? undefined : 'replicas serve something else',
      replicas.length === 0 || isBad || serving[0] === desired
        ? undefined
        : 'another revision serves than the desired one',
      replicas.length === 0 || phase === 'Pending' || asked !== '' ? undefined : 'the API server does not ask',
      serving[0] === undefined || replicas.length === 0 || asked === serving[0].spec
        ? undefined
        : `the API server asks for ${asked}`,
      isBad || revisions.every(({ state }) => !['Validated', 'Staged'].includes(state)) || replicas.length === 0
        ? undefined
        : 'a revision is on its way',
      desired?.state === 'Failed' && desired.spec !== 'x' ? 'a good revision failed' : undefined,
      policy.pin === 0 || isPinFound || reason === 'PinNotFound' || replicas.length === 0
        ? undefined
        : `reason ${reason}`,
      settings.degraded === 'Reject' && newest?.state === 'Failed' && desired === newest && serving.length > 0
        ? 'it is to be rejected, and serves'
        : undefined,
    ].filter((problem) => problem !== undefined);
    return problems.length === 0 ? undefined : problems.join('; ');
  };
}
