// What must happen before what, as an and-or graph: which states can be reached at all.
import { stronglyConnected } from './strongly-connected.ts';

/** A state that may be reached: when all goals that it needs are, or one of them. */
export interface Goal {
  readonly needs: readonly number[];
  readonly any: boolean;
}

/** Whether each goal can be reached: the least fixed point. Linear in goals and needs. */
export function reachableGoals(goals: readonly Goal[]): readonly boolean[] {
  const waiting = goals.map(({ needs, any }) => (any ? 1 : needs.length));
  const isReachable = waiting.map((count) => count === 0);
  const dependents = goals.map((): number[] => []);
  goals.forEach(({ needs }, goal) => needs.forEach((need) => dependents[need]?.push(goal)));
  const reached = [...goals.keys()].filter((goal) => isReachable[goal]);
  for (let next = reached.pop(); next !== undefined; next = reached.pop()) {
    for (const goal of dependents[next] ?? []) {
      const count = (waiting[goal] ?? 0) - 1;
      waiting[goal] = count;
      if (count === 0) {
        isReachable[goal] = true;
        reached.push(goal);
      }
    }
  }
  return isReachable;
}

/** Groups of goals that cannot be reached because they wait for each other, or a goal for itself. */
export function deadlocks(goals: readonly Goal[]): readonly (readonly number[])[] {
  const isReachable = reachableGoals(goals);
  const stuck = goals.map(({ needs }, goal) =>
    isReachable[goal] === true ? [] : needs.filter((need) => isReachable[need] !== true),
  );
  return stronglyConnected(stuck).filter(
    ([first = -1, ...others]) => others.length > 0 || stuck[first]?.includes(first) === true,
  );
}

/** The shortest way from a goal through its group back to itself: both ends are the goal. */
export function cycleThrough(start: number, group: ReadonlySet<number>, goals: readonly Goal[]): readonly number[] {
  const cameFrom = new Map<number, number>();
  const queue = [start];
  for (const goal of queue) {
    for (const need of goals[goal]?.needs ?? []) {
      if (need === start) {
        return [...wayTo(goal, start, cameFrom), start];
      }
      if (group.has(need) && !cameFrom.has(need)) {
        cameFrom.set(need, goal);
        queue.push(need);
      }
    }
  }
  return [start];
}

function wayTo(goal: number, start: number, cameFrom: ReadonlyMap<number, number>): readonly number[] {
  const way = [goal];
  for (let at = goal; at !== start;) {
    at = cameFrom.get(at) ?? start;
    way.push(at);
  }
  return way.toReversed();
}
