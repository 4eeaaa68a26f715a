import { parseJson } from '../values/index.ts';

/** Different settings that are kept ready per guest: more than the tenants of any cluster that we know of (3,500). */
export const MAX_READY_SETTINGS = 10_000;

/**
 * What builtin guests make of settings, made once for each text. Policies hand over the very same string with every
 * request, so that finding it costs next to nothing.
 */
export class SettingsCache<Ready> {
  readonly #prepare: (settings: unknown) => Ready;
  readonly #ready = new Map<string, Ready>();

  constructor(prepare: (settings: unknown) => Ready) {
    this.#prepare = prepare;
  }

  /** Throws what preparing throws, every time. */
  get(settingsJson: string): Ready {
    const known = this.#ready.get(settingsJson);
    if (known !== undefined) {
      return known;
    }
    const ready = this.#prepare(parseJson(settingsJson));
    if (this.#ready.size >= MAX_READY_SETTINGS) {
      this.#ready.clear();
    }
    this.#ready.set(settingsJson, ready);
    return ready;
  }
}
