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
export function survey(start: World, rules: Rules, checks: Checks, maxStates: number): Survey {
  const keys = new StateKeys();
  const ways = new Ways();
  const settling = new Set<string>();
  let count = 0;
  ways.note(keys.of(start), '', 'begin');
  for (let wave: readonly World[] = [start]; wave.length > 0;) {
    const following: World[] = [];
    for (const world of wave) {
      const from = keys.of(world);
      const problem = unsettled(world, rules, checks, keys, settling);
      if (problem !== undefined) {
        throw new RuleBroken(`${problem}\n${ways.to(from)}`);
      }
      for (const move of moves(world, rules)) {
        count += 1;
        const wrong = checks.moved(world, move);
        if (wrong !== undefined) {
          throw new RuleBroken(`${wrong}\n${ways.to(from)}\n  ${move.name}`);
        }
        if (ways.note(keys.of(move.world), from, move.name)) {
          following.push(move.world);
        }
      }
    }
    if (ways.size > maxStates) {
      throw new RangeError(`expected no more than ${maxStates} states: choose a smaller world`);
    }
    wave = following;
  }
  return { states: ways.size, moves: count };
}

/** How the world came to each state. */
class Ways {
  readonly #origins = new Map<string, { readonly from: string; readonly name: string }>();

  get size(): number {
    return this.#origins.size;
  }

  /** Whether the state is new. */
  note(key: string, from: string, name: string): boolean {
    const isNew = !this.#origins.has(key);
    if (isNew) {
      this.#origins.set(key, { from, name });
    }
    return isNew;
  }

  to(key: string): string {
    const names: string[] = [];
    for (let at = this.#origins.get(key); at !== undefined; at = this.#origins.get(at.from)) {
      names.push(`  ${at.name}`);
    }
    return names.toReversed().join('\n');
  }
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

/** Short keys of states: what states have in common is looked at once, and it does not matter which replica is which. */
class StateKeys {
  readonly #byObject = new WeakMap<object, number>();
  readonly #byText = new Map<string, number>();
  readonly #byWorld = new WeakMap<World, string>();

  of(world: World): string {
    const key = this.#byWorld.get(world) ?? this.#keyOf(world);
    this.#byWorld.set(world, key);
    return key;
  }

  #keyOf({ policy, revisions, asked, replicas, controllers, budget }: World): string {
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
