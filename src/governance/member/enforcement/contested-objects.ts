// Detects policies that alternately change one object: each reverts the change of the other.
import { groupResourceOf, keyText, type ObjectKey, type ResourceType } from '../../../resources/index.ts';
import { KeptEntries } from '../../../values/index.ts';

/** Changes of writers that are allowed within {@link WINDOW_MS}: two edits of two policies are no contest. */
const MAX_TURNS = 4;
/** Milliseconds. */
const WINDOW_MS = 60_000;
/** Delay of the first write of a contest; doubles with each write. Milliseconds. */
const FIRST_DELAY_MS = 5_000;
/** Longest delay. Milliseconds. */
const MAX_DELAY_MS = 300_000;
/** Objects that are remembered: some hundred bytes each. The oldest is forgotten first. */
const MAX_OBJECTS = 50_000;

interface Writes {
  /** The policy that wrote last. */
  readonly writer: string;
  /** The policy that wrote before it. */
  readonly other: string | undefined;
  /** How often the writer changed in the window. */
  readonly turns: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A contest over an object. */
export interface Contest {
  /** The other policy. */
  readonly with: string;
  /** When the next write is allowed. Milliseconds since 1970. */
  readonly until: number;
}

/** The writes of policies to objects. */
export class ContestedObjects {
  readonly #writes = new KeptEntries<string, Writes>({ maxEntries: MAX_OBJECTS });

  /** Number of objects whose last writes are known. */
  get size(): number {
    return this.#writes.size;
  }

  /** The contest that a write of the policy would continue before its delay has passed. */
  contest(type: ResourceType, key: ObjectKey, policy: string, now: number): Contest | undefined {
    return this.#contest(type, key, policy, now, 1);
  }

  /** The contest of the policy, until the other policy has had time to continue it. */
  fight(type: ResourceType, key: ObjectKey, policy: string, now: number): Contest | undefined {
    const known = this.#writes.get(idOf(type, key));
    const isPart = known?.writer === policy || known?.other === policy;
    return isPart ? this.#contest(type, key, policy, now, 2) : undefined;
  }

  /** @param delays how many delays after the last write */
  #contest(type: ResourceType, key: ObjectKey, policy: string, now: number, delays: number): Contest | undefined {
    const known = this.#writes.get(idOf(type, key));
    if (known === undefined || known.turns < MAX_TURNS) {
      return undefined;
    }
    const rival = known.writer === policy ? known.other : known.writer;
    const delay = Math.min(FIRST_DELAY_MS * 2 ** (known.turns - MAX_TURNS), MAX_DELAY_MS);
    const until = known.at + delays * delay;
    return rival === undefined || until <= now ? undefined : { with: rival, until };
  }

  /** Records a write. */
  record(type: ResourceType, key: ObjectKey, policy: string, now: number): void {
    const id = idOf(type, key);
    this.#writes.deleteOldest((one) => !isRecentAt(now, one));
    const known = this.#writes.get(id);
    const isRecent = known !== undefined && isRecentAt(now, known);
    const isTurn = isRecent && known.writer !== policy;
    const turns = isRecent ? known.turns + (isTurn ? 1 : 0) : 0;
    const other = isTurn ? known.writer : isRecent ? known.other : undefined;
    this.#writes.set(id, { writer: policy, other, turns, at: now });
  }
}

/** Whether a write now may continue a contest. */
function isRecentAt(now: number, { at, turns }: Writes): boolean {
  return now - at < (turns >= MAX_TURNS ? 2 * MAX_DELAY_MS : WINDOW_MS);
}

function idOf(type: ResourceType, key: ObjectKey): string {
  return `${groupResourceOf(type)} ${keyText(key)}`;
}
