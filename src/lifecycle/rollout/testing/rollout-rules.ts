// The rules of rollouts, as checks of a world.
import { DISARMED } from '../../../resources/index.ts';
import { cannotServe, type RolloutSettings } from '../../../rollout/index.ts';
import { viewOf } from './believed-view.ts';
import {
  failurePolicyOf,
  isSame,
  type Move,
  type Policy,
  type Revision,
  type Rules,
  SPECS,
  type World,
} from './rollout-world.ts';

/** The rule that a move violates, if any. */
export function moveRules(rules: Rules): (before: World, move: Move) => string | undefined {
  const { settings } = rules;
  const isServing = settings.degraded === 'Serve';
  return (before, { world }) =>
    [
      isServing ? servingIsKept(before, world) : undefined,
      onlyValidatedServes(world),
      switchIsPrepared(before, world, settings),
      settings.degraded === 'Ignore' ? undefined : coverageIsKept(before, world),
      settings.unserved === 'Ignore' ? coverageIsEarned(world) : undefined,
      narrowingIsDue(before, world),
      verdictsAreNotMixed(world),
      activeIsTrue(before, world),
      outcomeIsTrue(world, rules),
      revisionsAreKept(before, world),
      revisionsAreNeeded(before, world),
    ].find((problem) => problem !== undefined);
}

/** A failure of a newer revision does not stop the serving one. */
function servingIsKept(before: World, after: World): string | undefined {
  if (
    !isDisarming(before) &&
    before.revisions.some(({ state }) => state === 'Serving') &&
    !after.revisions.some(({ state }) => state === 'Serving')
  ) {
    return 'no revision serves any more';
  }
  const stopped = before.replicas.find(({ name, serves }, index) => {
    const now = after.replicas[index];
    // A restarted replica has loaded nothing yet.
    return serves !== 0 && now?.name === name && now.serves === 0 && now.loaded.length > 0 && !now.sees.isDisarmed;
  });
  return stopped === undefined ? undefined : `${stopped.name} serves nothing any more`;
}

/** Whether a controller may end the enforcement, because it has read that the policy is disarmed. */
function isDisarming({ controllers }: World): boolean {
  return controllers.some(({ policy }) => policy.isDisarmed);
}

/** Only validated revisions serve. */
function onlyValidatedServes({ revisions }: World): string | undefined {
  const bad = revisions.find(({ state, spec, isPinned }) => state === 'Serving' && (!isPinned || spec === 'x'));
  return bad === undefined ? undefined : `revision ${bad.n} was not validated, and serves`;
}

/**
 * A revision starts to serve after replicas have loaded it, and after its requests and those of the previous one are
 * covered.
 */
function switchIsPrepared(before: World, { revisions }: World, { strategy }: RolloutSettings): string | undefined {
  const serving = before.revisions.find(({ state }) => state === 'Serving');
  const switched = revisions.find(
    ({ n, state }) => state === 'Serving' && before.revisions.find((one) => one.n === n)?.state !== 'Serving',
  );
  const was = before.revisions.find(({ n }) => n === switched?.n);
  // A policy that is armed again serves what it was disarmed with.
  if (switched === undefined || was === undefined || was.reason === DISARMED) {
    return undefined;
  }
  const isLate = was.late && strategy === 'Available';
  const isInherited = evaluatesAsServed(before, was);
  const isLoaded = before.controllers.some(({ replicas = [] }) => {
    if (
      isInherited &&
      replicas.every((one) => one.state !== 'connected' || one.serves === 0 || one.loaded.includes(was.n))
    ) {
      return true;
    }
    const has = replicas.filter(({ state, loaded }) => state === 'connected' && loaded.includes(switched.n));
    return has.length > 0 && (has.length === replicas.length || isLate);
  });
  if (!isLoaded) {
    return `revision ${switched.n} is to serve, and replicas have not loaded it`;
  }
  // As far as the controller knows: a late write of the previous leader may have reduced the coverage for a moment.
  const coverages = before.controllers.map((belief) => belief.covered);
  const isCovered =
    serving === undefined ||
    coverages.some((covered) => [serving, switched].every(({ spec }) => covered.includes(spec)));
  return isCovered ? undefined : `revision ${switched.n} is to serve, and the API server covers ${before.covered}`;
}

/** Whether a revision differs from one that served only in its failurePolicy. */
function evaluatesAsServed({ revisions }: World, { n, spec, tag }: Revision): boolean {
  return revisions.some(
    (one) => one.n !== n && one.order > 0 && one.spec.toLowerCase() === spec.toLowerCase() && one.tag === tag,
  );
}

/** What the controller says about requests is what a probe gets, as soon as its caches have the state of the world. */
function outcomeIsTrue(world: World, rules: Rules): string | undefined {
  const { policy, revisions, covered, replicas, controllers } = world;
  const informed = controllers.find(
    (belief) =>
      belief.isFormer !== true &&
      belief.covered === covered &&
      isSame(belief.replicas, replicas) &&
      isSame(belief.revisions, revisions) &&
      isSame(belief.policy, policy),
  );
  if (informed === undefined) {
    return undefined;
  }
  const { status, reason, message } = rules.outcome(viewOf(informed, rules));
  const says = reason === 'Serving' ? 'judged' : message.includes('rejected') ? 'rejected' : 'admitted';
  const gets = probed(world);
  const isTrue = status === 'Unknown' || (status === 'True' ? gets.every((one) => one === says) : isAdmission(gets));
  return isTrue ? undefined : `${status} ${reason} (${message}), and a probe is ${gets.join(' or ')}`;
}

/** What a probe may get: from any replica, connected to the controller or not, and where API servers reach none. */
export function probed({ covered, replicas }: World): readonly ('judged' | 'rejected' | 'admitted' | 'nothing')[] {
  if (covered === '') {
    return ['nothing'];
  }
  const isReached = replicas.length > 0 && replicas.every(({ state }) => state === 'connected');
  const unreached = covered === covered.toUpperCase() ? 'admitted' : 'rejected';
  return [
    ...replicas.map(({ serves, sees }) => (serves === 0 ? sees.otherwise : 'judged')),
    ...(isReached ? [] : ([unreached] as const)),
  ];
}

function isAdmission(gets: ReturnType<typeof probed>): boolean {
  return gets.every((one) => one === 'nothing');
}

/** A policy is covered once a revision has served, not before. */
function coverageIsEarned({ covered, revisions }: World): string | undefined {
  return covered === '' || revisions.some(({ order }) => order > 0)
    ? undefined
    : `the API server covers ${covered}, and nothing has served`;
}

/** A covered policy stays covered. */
function coverageIsKept(before: World, after: World): string | undefined {
  return before.covered !== '' && after.covered === '' && !isDisarming(before)
    ? 'the policy is no longer covered'
    : undefined;
}

/**
 * Requests of the previous revision stay covered until replicas have switched, cannot, or have exceeded the deadline.
 */
function narrowingIsDue(before: World, { covered }: World): string | undefined {
  const serving = before.revisions.filter(({ state }) => state === 'Serving').toSorted((a, b) => b.order - a.order)[0];
  const isNarrower = SPECS.some((spec) => before.covered.includes(spec) && !covered.includes(spec));
  if (serving === undefined || serving.late || !isNarrower || isDisarming(before)) {
    return undefined;
  }
  const isLoosened = failurePolicyOf(serving.spec) === 'admitted' && evaluatesAsServed(before, serving);
  // As far as the controller knows.
  const isDue = before.controllers.some(({ replicas = [] }) =>
    replicas.every(
      ({ state, serves, failed }) =>
        state !== 'connected' || serves === serving.n || failed.includes(serving.n) || (isLoosened && serves === 0),
    ),
  );
  return isDue ? undefined : `the API server covers ${covered} only, and replicas answer for ${before.covered}`;
}

function isAtRest({ status }: Policy): boolean {
  return status?.phase === 'Active' || status?.phase === 'RolledBack';
}

/** Replicas answer with different revisions only while the phase says so. */
function verdictsAreNotMixed({ policy, replicas }: World): string | undefined {
  const answers = new Set(replicas.map(({ serves }) => serves).filter((n) => n !== 0));
  return isAtRest(policy) && answers.size > 1
    ? `${policy.status?.phase}, and replicas serve ${[...answers].join(', ')}`
    : undefined;
}

/** A phase at rest is true when written: every replica serves the desired revision, and exactly that is covered. */
function activeIsTrue(before: World, { policy, controllers, revisions, covered }: World): string | undefined {
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
    return `${policy.status?.phase}, and ${unlike?.name ?? 'no controller'} does not serve ${desiredRevision}`;
  }
  // With two leaders, one may not know the last write of the other yet, but its policy is of this version.
  const served = revisions.find(({ n }) => n === desiredRevision);
  const isDeclared = policy.pin === 0 || policy.status?.phase === 'Active';
  if (
    served === undefined ||
    (isDeclared && served.spec !== policy.spec) ||
    (policy.pin !== 0 && served.n !== policy.pin)
  ) {
    return `${policy.status?.phase} with revision ${desiredRevision}, which is not the desired one`;
  }
  return believer.covered.includes(served.spec)
    ? undefined
    : `${policy.status?.phase}, and the API server covers ${covered}`;
}

/** Revision numbers grow; serving and pinned revisions are not deleted. */
function revisionsAreKept(before: World, after: World): string | undefined {
  const numbers = after.revisions.map(({ n }) => n);
  if (
    numbers.some((n, index) => index > 0 && n <= (numbers[index - 1] ?? 0)) ||
    (numbers.at(-1) ?? 0) < (before.revisions.at(-1)?.n ?? 0)
  ) {
    return `revisions ${numbers.join(', ')}`;
  }
  // A pin that a controller has not read yet does not count.
  const isPinned = (number: number): boolean => before.controllers.every((belief) => belief.policy.pin === number);
  const lost = before.revisions.find(({ n, state }) => (state === 'Serving' || isPinned(n)) && !numbers.includes(n));
  return lost === undefined ? undefined : `revision ${lost.n} is lost`;
}

/** A refresh of modules that have not changed makes no revision. */
function revisionsAreNeeded(before: World, after: World): string | undefined {
  const [last, made] = [before.revisions.at(-1), after.revisions.at(-1)];
  if (last === undefined || made === undefined || made.n === last.n || made.spec !== last.spec) {
    return undefined;
  }
  const isFresh = last.isPinned && last.tag === before.tag && !cannotServe(last);
  return isFresh && before.budget.faults === after.budget.faults
    ? `revision ${made.n} has the modules of revision ${last.n}`
    : undefined;
}

/** What is wrong with a settled world, if anything. */
export function settledRules({ settings }: Rules): (world: World) => string | undefined {
  return ({ policy, revisions, replicas, covered }) => {
    const { phase = 'none', reason } = policy.status ?? {};
    const newest = revisions.at(-1);
    const isPinFound = revisions.some(({ n }) => n === policy.pin);
    const desired = policy.pin === 0 ? newest : revisions.find(({ n }) => n === policy.pin);
    const serving = revisions.filter(({ state }) => state === 'Serving');
    const answers = new Set(replicas.map(({ serves }) => serves));
    const hasServed = revisions.some(({ order }) => order > 0);
    const mustBeCovered =
      !policy.isDisarmed &&
      (serving.length > 0 || (hasServed ? settings.degraded !== 'Ignore' : settings.unserved === 'Reject'));
    const isBad = desired === undefined || desired.state === 'Failed';
    const expected = policy.isDisarmed
      ? ['Error']
      : replicas.length === 0
        ? ['Pending', 'Error']
        : isBad
          ? [serving.length > 0 ? 'Degraded' : 'Error']
          : [policy.pin === 0 || desired === newest ? 'Active' : 'RolledBack'];
    const problems = [
      newest?.spec === policy.spec ? undefined : 'the spec has no revision',
      policy.refresh === 0 || replicas.length === 0 || (newest?.refreshed || newest?.refresh) === policy.refresh
        ? undefined
        : 'a refresh is not handled',
      expected.includes(phase) ? undefined : `expected ${expected.join(' or ')}, got ${phase} (${reason})`,
      serving.length <= 1 ? undefined : `${serving.length} revisions serve`,
      replicas.length === 0 || answers.size === 1 ? undefined : 'replicas differ',
      replicas.length === 0 || answers.has(serving[0]?.n ?? 0) ? undefined : 'replicas serve something else',
      replicas.length === 0 || isBad || serving[0] === desired || policy.isDisarmed
        ? undefined
        : 'another revision serves than the desired one',
      replicas.length === 0 || phase === 'Pending' || (covered !== '') === mustBeCovered
        ? undefined
        : `the API server covers ${covered || 'nothing'}`,
      serving.length > 0 || newest === undefined || !cannotServe(newest) || newest.isEnforced === mustBeCovered
        ? undefined
        : 'replicas answer for a policy that is not covered, or the reverse',
      serving[0] === undefined || replicas.length === 0 || covered === serving[0].spec
        ? undefined
        : `the API server covers ${covered}`,
      isBad ||
      policy.isDisarmed ||
      revisions.every(({ state }) => !['Validated', 'Staged'].includes(state)) ||
      replicas.length === 0
        ? undefined
        : 'a revision is on its way',
      desired?.state === 'Failed' && desired.spec !== 'x' ? 'a good revision failed' : undefined,
      policy.pin === 0 || isPinFound || reason === 'PinNotFound' || replicas.length === 0
        ? undefined
        : `reason ${reason}`,
      policy.isDisarmed && (serving.length > 0 || covered !== '') ? 'it is disarmed, and enforced' : undefined,
      !policy.isDisarmed && settings.degraded === 'Serve' && hasServed && serving.length === 0
        ? 'what served last does not serve'
        : undefined,
      settings.degraded !== 'Serve' && newest?.state === 'Failed' && desired === newest && serving.length > 0
        ? 'degraded policies do not serve, and it serves'
        : undefined,
    ].filter((problem) => problem !== undefined);
    return problems.length === 0 ? undefined : problems.join('; ');
  };
}
