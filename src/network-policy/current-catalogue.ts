import type { Logger } from 'pino';
import { builtinCatalogue, type Catalogue } from '../engine/network-policy/index.ts';
import { type Clock, pause, SYSTEM_CLOCK } from '../runtime/index.ts';
import { errorText } from '../values/index.ts';

/** Loads the catalogue that an administrator names, from files or a registry. */
export type LoadCatalogue = (signal: AbortSignal) => Promise<Catalogue>;

export interface CurrentCatalogueOptions {
  /** Default: the builtin catalogue counts. */
  readonly load?: LoadCatalogue;
  /** Called when the catalogue is loaded after {@link CurrentCatalogue.start} has resolved. */
  readonly onChange: () => void;
  readonly log: Logger;
  readonly clock?: Clock;
}

/** How long statuses wait for the catalogue, so that a slow registry does not cause two writes of each. Milliseconds. */
const WAIT_MS = 15_000;
/** Delay after the first failed attempt; doubles with each one. Milliseconds. */
const FIRST_DELAY_MS = 5_000;
const MAX_DELAY_MS = 300_000;

/** The catalogue that counts: the builtin one until the configured one is loaded. */
export class CurrentCatalogue {
  readonly #options: CurrentCatalogueOptions;
  #loaded: Catalogue | undefined;

  constructor(options: CurrentCatalogueOptions) {
    this.#options = options;
  }

  get value(): Catalogue {
    return this.#loaded ?? builtinCatalogue();
  }

  /** Whether the builtin catalogue counts although another one is configured. */
  get isMissing(): boolean {
    return this.#options.load !== undefined && this.#loaded === undefined;
  }

  /** Resolves after the first attempt, or some seconds; later attempts follow until `signal` is aborted. Never rejects. */
  async start(signal: AbortSignal): Promise<void> {
    const { load, clock = SYSTEM_CLOCK } = this.#options;
    if (load === undefined || this.#loaded !== undefined) {
      return;
    }
    const first = this.#attempt(load, signal);
    const waited = Promise.race([first, pause(clock, WAIT_MS, signal)]);
    void this.#continue(load, first, waited, signal);
    await waited;
  }

  async #continue(
    load: LoadCatalogue,
    first: Promise<boolean>,
    waited: Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock = SYSTEM_CLOCK, onChange } = this.#options;
    const isInTime = (await waited) === true;
    let isLoaded = await first;
    for (let delayMs = FIRST_DELAY_MS; !isLoaded && !signal.aborted; delayMs = Math.min(2 * delayMs, MAX_DELAY_MS)) {
      await pause(clock, delayMs, signal);
      isLoaded = !signal.aborted && (await this.#attempt(load, signal));
    }
    if (isLoaded && !isInTime) {
      onChange();
    }
  }

  async #attempt(load: LoadCatalogue, signal: AbortSignal): Promise<boolean> {
    const { log } = this.#options;
    try {
      this.#loaded = await load(signal);
      return true;
    } catch (error) {
      if (!signal.aborted) {
        log.error(
          { error: errorText(error) },
          'the catalogue of network providers cannot be loaded: the builtin one counts until it is',
        );
      }
      return false;
    }
  }
}
