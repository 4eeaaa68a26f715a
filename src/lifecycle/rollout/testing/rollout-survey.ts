// Visits every state that a world can come to, once, and checks each.
import type { Move, Replica, Rules, World } from './rollout-world.ts';
import { calm, moves } from './world-moves.ts';

/** A state in which a rule does not hold, and how the world came there. */
export class RuleBroken extends Error {
  override readonly name = 'RuleBroken';
}

export interface Survey {
  readonly states: number;
  readonly moves: number;
}

export interface Checks {
  /** What is wrong with a step of the world; undefined when it is as it must be. */
  readonly moved: (before: World, move: Move) => string | undefined;
  /** What is wrong with a world in which nothing is left to happen. */
  readonly settled: (world: World) => string | undefined;
}

/** Far more than a world takes that settles. */
const MAX_CALM_MOVES = 200;

/** @throws RuleBroken with the shortest way to a state in which a rule is broken */
export function survey(start: World, rules: Rules, checks: Checks, limit: number): Survey {
  const keys = new StateKeys();
  const origins = new Map<string, { readonly from: string; readonly name: string }>();
  const settling = new Set<string>();
  const open: World[] = [start];
  origins.set(keys.of(start), { from: '', name: 'begin' });
  let count = 0;
  for (let world = open[0], at = 0; world !== undefined; at += 1, world = open[at]) {
    const from = keys.of(world);
    // Worlds that were visited are not needed any more.
    delete open[at];
    const problem = unsettled(world, rules, checks, keys, settling);
    if (problem !== undefined) {
      throw new RuleBroken(`${problem}\n${wayTo(from, origins)}`);
    }
    for (const move of moves(world, rules)) {
      count += 1;
      const key = keys.of(move.world);
      const wrong = checks.moved(world, move);
      if (!origins.has(key)) {
        origins.set(key, { from, name: move.name });
        open.push(move.world);
      }
      if (wrong !== undefined) {
        throw new RuleBroken(`${wrong}\n${wayTo(from, origins)}\n  ${move.name}`);
      }
    }
    if (origins.size > limit) {
      throw new RuleBroken(`more than ${limit} states`);
    }
  }
  return { states: origins.size, moves: count };
}

/** Lets a world come to rest: there is one way only, and most worlds join one that was gone before. */
function unsettled(
  world: World,
  rules: Rules,
  { settled }: Checks,
  keys: StateKeys,
  settling: Set<string>,
): string | undefined {
  const way: string[] = [];
  let current = world;
  for (let count = 0; count < MAX_CALM_MOVES; count += 1) {
    const key = keys.of(current);
    if (settling.has(key)) {
      break;
    }
    way.push(key);
    const next = calm(current, rules);
    if (next === undefined) {
      const problem = settled(current);
      if (problem !== undefined) {
        return `${problem} in ${JSON.stringify(current)}`;
      }
      break;
    }
    if (count === MAX_CALM_MOVES - 1) {
      return `does not settle: ${JSON.stringify(current)}`;
    }
    current = next;
  }
  for (const key of way) {
    settling.add(key);
  }
  return undefined;
}

function wayTo(key: string, origins: ReadonlyMap<string, { readonly from: string; readonly name: string }>): string {
  const names: string[] = [];
  for (let at = origins.get(key); at !== undefined; at = origins.get(at.from)) {
    names.push(`  ${at.name}`);
  }
  return names.toReversed().join('\n');
}

/** Short keys of states: what states have in common is looked at once, and it does not matter which replica is which. */
class StateKeys {
  readonly #byObject = new WeakMap<object, number>();
  readonly #byText = new Map<string, number>();

  of({ policy, revisions, asked, replicas, controllers, budget }: World): string {
    const lists = [replicas, ...controllers.map((belief) => belief.replicas)].map((list) => this.#byName(list ?? []));
    const names = new Set(lists.flatMap((list) => [...list.keys()]));
    const alike = [...names].map((name) => lists.map((list) => list.get(name) ?? '').join('/')).toSorted();
    const beliefs = controllers.map((belief) => [
      this.#number(belief.policy),
      this.#list(belief.revisions),
      belief.asked,
      belief.isFormer,
      belief.replicas === undefined,
    ]);
    return [this.#number(policy), this.#list(revisions), asked, this.#number(budget), alike, ...beliefs].join(';');
  }

  #byName(replicas: readonly Replica[]): ReadonlyMap<string, number> {
    return new Map(replicas.map((replica) => [replica.name, this.#number(replica, { ...replica, name: '' })]));
  }

  #list(list: readonly object[]): string {
    return list.map((one) => this.#number(one)).join('.');
  }

  #number(value: object, content = value): number {
    const known = this.#byObject.get(value);
    if (known !== undefined) {
      return known;
    }
    const text = JSON.stringify(content);
    const number = this.#byText.get(text) ?? this.#byText.size;
    this.#byText.set(text, number);
    this.#byObject.set(value, number);
    return number;
  }
}
