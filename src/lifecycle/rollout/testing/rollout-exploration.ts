// Visits every reachable state of a world once, and checks each.
import type { Move, Replica, Rules, World } from './rollout-world.ts';
import { settle, moves } from './world-moves.ts';

/** A violated rule, with the moves that lead to it. */
export class RuleBroken extends Error {
  override readonly name = 'RuleBroken';
}

export interface Exploration {
  readonly states: number;
  readonly moves: number;
}

export interface Checks {
  /** The violation of a move, if any. */
  readonly moved: (before: World, move: Move) => string | undefined;
  /** The violation of a settled world, if any. */
  readonly settled: (world: World) => string | undefined;
}

/** Far more moves than a world takes to settle. */
const MAX_SETTLING_MOVES = 200;

/** @throws RuleBroken with the shortest path to a violation */
export function explore(start: World, rules: Rules, checks: Checks, maxStates: number): Exploration {
  const keys = new StateKeys();
  const paths = new Paths();
  const settling = new Set<string>();
  let count = 0;
  paths.note(keys.of(start), '', 'begin');
  for (let wave: readonly World[] = [start]; wave.length > 0;) {
    const following: World[] = [];
    for (const world of wave) {
      const from = keys.of(world);
      const problem = unsettled(world, rules, checks, keys, settling);
      if (problem !== undefined) {
        throw new RuleBroken(`${problem}\n${paths.to(from)}`);
      }
      for (const move of moves(world, rules)) {
        count += 1;
        const wrong = checks.moved(world, move);
        if (wrong !== undefined) {
          throw new RuleBroken(`${wrong}\n${paths.to(from)}\n  ${move.name}`);
        }
        if (paths.note(keys.of(move.world), from, move.name)) {
          following.push(move.world);
        }
      }
    }
    if (paths.size > maxStates) {
      throw new RangeError(`expected no more than ${maxStates} states: choose a smaller world`);
    }
    wave = following;
  }
  return { states: paths.size, moves: count };
}

/** The shortest path to each state. */
class Paths {
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

/** Settles a world. Its moves are deterministic, and most worlds reach a state that was checked before. */
function unsettled(
  world: World,
  rules: Rules,
  { settled }: Checks,
  keys: StateKeys,
  settling: Set<string>,
): string | undefined {
  const way: string[] = [];
  let current = world;
  for (let count = 0; count < MAX_SETTLING_MOVES; count += 1) {
    const key = keys.of(current);
    if (settling.has(key)) {
      break;
    }
    way.push(key);
    const next = settle(current, rules);
    if (next === undefined) {
      const problem = settled(current);
      if (problem !== undefined) {
        return `${problem} in ${JSON.stringify(current)}`;
      }
      break;
    }
    if (count === MAX_SETTLING_MOVES - 1) {
      return `does not settle: ${JSON.stringify(current)}`;
    }
    current = next;
  }
  for (const key of way) {
    settling.add(key);
  }
  return undefined;
}

/** Short keys of states. Equal parts share a number, and the order of replicas does not matter. */
class StateKeys {
  readonly #byObject = new WeakMap<object, number>();
  readonly #byText = new Map<string, number>();
  readonly #byWorld = new WeakMap<World, string>();

  of(world: World): string {
    const key = this.#byWorld.get(world) ?? this.#keyOf(world);
    this.#byWorld.set(world, key);
    return key;
  }

  #keyOf({ policy, revisions, covered, tag, replicas, controllers, budget }: World): string {
    const lists = [replicas, ...controllers.map((belief) => belief.replicas)].map((list) => this.#byName(list ?? []));
    const names = new Set(lists.flatMap((list) => [...list.keys()]));
    const alike = [...names].map((name) => lists.map((list) => list.get(name) ?? '').join('/')).toSorted();
    const beliefs = controllers.map((belief) => [
      this.#number(belief.policy),
      this.#list(belief.revisions),
      belief.covered,
      belief.isFormer,
      belief.replicas === undefined,
    ]);
    return [this.#number(policy), this.#list(revisions), covered, tag, this.#number(budget), alike, ...beliefs].join(
      ';',
    );
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
