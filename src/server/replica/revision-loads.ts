// Loading revisions: read, fetch, compile and check; again later, when that may help.
import { isNamespacedPolicyId } from '../../resources/index.ts';
import { jitteredBackoff } from '../policies/backoff.ts';
import type { LoadOutcome, LoadRequest } from '../../evaluation/index.ts';
import { pinsOf, type RevisionEntry, type Slot } from './revision-entry.ts';
import type { ReadPolicy, UnreadPolicy } from './revision-reader.ts';

/** A revision of a policy that is to be loaded. */
export type RevisionLoad = readonly [entry: RevisionEntry, slot: Slot];

/** What became of it. */
export type EndedLoad = readonly [entry: RevisionEntry, slot: Slot, outcome: LoadOutcome];

export interface LoadCollaborators {
  /** Reads specs; in their order. Never rejects. */
  read(policies: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]>;
  /** Fetches, compiles and checks. Outcomes come in any order. */
  load(requests: readonly LoadRequest[], done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void): void;
}

/** The loads of one registry. */
export class RevisionLoads {
  readonly #with: LoadCollaborators;
  readonly #isWanted: (entry: RevisionEntry, slot: Slot) => boolean;
  readonly #ended: (loads: readonly EndedLoad[]) => void;
  #stopped = false;

  /**
   * @param isWanted whether anybody still waits for what becomes of a slot
   * @param ended told of loads that are still wanted; those that come together are told together
   */
  constructor(
    collaborators: LoadCollaborators,
    isWanted: (entry: RevisionEntry, slot: Slot) => boolean,
    ended: (loads: readonly EndedLoad[]) => void,
  ) {
    this.#with = collaborators;
    this.#isWanted = isWanted;
    this.#ended = ended;
  }

  begin(loads: readonly RevisionLoad[]): void {
    if (loads.length === 0 || this.#stopped) {
      return;
    }
    for (const [, slot] of loads) {
      clearTimeout(slot.retry);
      slot.isLoading = true;
    }
    const unread = loads.filter(([, { declared }]) => declared === undefined);
    if (unread.length === 0) {
      this.#fetch(loads);
    } else {
      void this.#readThenFetch(loads, unread);
    }
  }

  /** Begins nothing more. */
  stop(): void {
    this.#stopped = true;
  }

  async #readThenFetch(loads: readonly RevisionLoad[], unread: readonly RevisionLoad[]): Promise<void> {
    const read = await this.#with.read(unread.map(([{ id }, { wanted }]) => ({ id, spec: wanted?.snapshot })));
    const failed = unread.flatMap(([entry, slot], index): EndedLoad[] => {
      const outcome = takeOver(slot, read[index]);
      return outcome === undefined ? [] : [[entry, slot, outcome]];
    });
    this.#end(failed);
    this.#fetch(loads.filter(([, { declared }]) => declared !== undefined));
  }

  #fetch(loads: readonly RevisionLoad[]): void {
    const requests = new Map<LoadRequest, RevisionLoad>();
    for (const load of loads) {
      const [{ id }, { declared, pins }] = load;
      if (declared !== undefined && this.#isWanted(...load)) {
        requests.set(
          { id, definition: declared.definition, digests: pins, isForTenant: isNamespacedPolicyId(id) },
          load,
        );
      }
    }
    if (requests.size === 0 || this.#stopped) {
      return;
    }
    this.#with.load([...requests.keys()], (outcomes) => {
      this.#end(
        [...outcomes].flatMap(([request, outcome]): EndedLoad[] => {
          const load = requests.get(request);
          return load === undefined ? [] : [[...load, outcome]];
        }),
      );
    });
  }

  #end(loads: readonly EndedLoad[]): void {
    const wanted = loads.filter(([entry, slot]) => this.#isWanted(entry, slot));
    for (const [entry, slot, outcome] of wanted) {
      slot.isLoading = false;
      slot.attempts += 1;
      slot.nextRetry = undefined;
      if (!outcome.ok && mayPass(outcome) && !this.#stopped) {
        const delayMs = jitteredBackoff(slot.attempts);
        slot.nextRetry = new Date(Date.now() + delayMs);
        slot.retry = setTimeout(() => this.begin([[entry, slot]]), delayMs);
        slot.retry.unref();
      }
    }
    if (wanted.length > 0) {
      this.#ended(wanted);
    }
  }
}

/**
 * Whether trying again may help. The revision was found good with these very modules, so what they do here only, being too
 * slow for a busy machine or running out of memory, may pass as well.
 */
function mayPass({ transient, reason }: LoadOutcome & { ok: false }): boolean {
  return transient || reason === 'InvalidModule' || reason === 'SettingsCheckFailed';
}

/** Notes what a spec says. Why nothing more is to be done with it, if so. */
function takeOver(slot: Slot, read: ReadPolicy | undefined): LoadOutcome | undefined {
  const fails = (message: string, transient = false): LoadOutcome => {
    return { ok: false, reason: 'InvalidDefinition', message, transient };
  };
  if (read === undefined || 'problem' in read) {
    return fails(read?.problem ?? 'the revision cannot be read', read?.isTransient);
  }
  const pins = pinsOf(read.definition, slot.wanted?.modules ?? []);
  if (typeof pins === 'string') {
    return fails(pins);
  }
  slot.declared = read;
  slot.pins = pins;
  return undefined;
}
