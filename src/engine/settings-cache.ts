import { parseJson } from '../values/index.ts';

/**
 * Maximum number of prepared settings per guest: twice the namespaces that Kubernetes is tested with (10,000), each with its
 * own parameters. The largest cluster with tenants that we know of has 3,500.
 */
export const MAX_READY_SETTINGS = 20_000;

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
      const [oldest = ''] = this.#ready.keys();
      this.#ready.delete(oldest);
    }
    this.#ready.set(settingsJson, ready);
    return ready;
  }
}
