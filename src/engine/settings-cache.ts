import { parseJson } from '../values/index.ts';

/** Maximum number of prepared settings per guest: more than the tenants of any cluster that we know of (3,500). */
export const MAX_READY_SETTINGS = 10_000;

/**
 * Settings as builtin guests prepare them, by their JSON text. A policy passes the same string object with every
 * request, so the lookup is cheap.
 */
export class SettingsCache<Ready> {
  readonly #prepare: (settings: unknown) => Ready;
  readonly #ready = new Map<string, Ready>();

  constructor(prepare: (settings: unknown) => Ready) {
    this.#prepare = prepare;
  }

  /** Throws what `prepare` throws, every time. */
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
