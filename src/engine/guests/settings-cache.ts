import { KeptEntries, parseJson } from '../../values/index.ts';

/**
 * Maximum number of prepared settings per guest: twice the namespaces that Kubernetes is tested with (10,000), each with its
 * own parameters. The largest cluster with tenants that we know of has 3,500.
 */
const MAX_READY_SETTINGS = 20_000;
/**
 * Maximum length of their JSON texts together, whoever changes how many of them. Those of `builtin:cel` take 75 bytes for each
 * character (measured), so that they are 150 MiB in each thread.
 */
const MAX_READY_CHARACTERS = 2 * 1024 * 1024;
/**
 * The same for settings that are prepared again in 30 µs, a small part of a review: those of a pod profile, which take 8 KiB,
 * so that they are 2 MiB in each worker.
 */
export const MAX_CHEAP_SETTINGS = 256;

/**
 * Settings as builtin guests prepare them, by their JSON text. A policy passes the same string object with every
 * request, so the lookup is cheap.
 */
export class SettingsCache<Ready> {
  readonly #prepare: (settings: unknown) => Ready;
  readonly #ready: KeptEntries<string, Ready>;

  /** @param most maximum number of settings that are kept */
  constructor(prepare: (settings: unknown) => Ready, most = MAX_READY_SETTINGS) {
    this.#prepare = prepare;
    this.#ready = new KeptEntries({
      maxEntries: most,
      maxSize: MAX_READY_CHARACTERS,
      sizeOf: (_ready, settingsJson) => settingsJson.length,
    });
  }

  /** Throws what `prepare` throws, every time. */
  get(settingsJson: string): Ready {
    const known = this.#ready.get(settingsJson);
    if (known !== undefined) {
      // Those that were used last stay.
      this.#ready.set(settingsJson, known);
      return known;
    }
    const ready = this.#prepare(parseJson(settingsJson));
    this.#ready.set(settingsJson, ready);
    return ready;
  }
}
