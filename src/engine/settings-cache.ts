/** Different settings that are kept ready per guest: more than the tenants of any cluster that we know of (3,500). */
export const MAX_READY_SETTINGS = 10_000;

/**
 * What builtin guests make of settings, made once for each text. Policies hand over the very same string with every
 * request, so that finding it costs next to nothing.
 */
export class SettingsCache<Ready> {
  readonly #prepare: (settings: unknown) => Ready;
  readonly #maxLength: number;
  readonly #ready = new Map<string, Ready>();
  /** Of all that are ready. Characters. */
  #length = 0;

  /** `maxLength`: of all settings that are kept ready together, in characters. Default: only their number is limited. */
  constructor(prepare: (settings: unknown) => Ready, maxLength = Infinity) {
    this.#prepare = prepare;
    this.#maxLength = maxLength;
  }

  /** Throws what preparing throws, every time. */
  get(settingsJson: string): Ready {
    const known = this.#ready.get(settingsJson);
    if (known !== undefined) {
      return known;
    }
    const ready = this.#prepare(JSON.parse(settingsJson));
    if (this.#ready.size >= MAX_READY_SETTINGS || this.#length + settingsJson.length > this.#maxLength) {
      this.#ready.clear();
      this.#length = 0;
    }
    this.#ready.set(settingsJson, ready);
    this.#length += settingsJson.length;
    return ready;
  }
}
