/** Zone names of Go's `time.LoadLocation`, which are paths: offsets such as `+02:00`, which ICU takes too, are not. */
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]*$/;

/** ICU has no list of all abbreviations; these locales have those of their region. */
const ABBREVIATION_LOCALES = ['en-US', 'en-GB', 'en-AU', 'en-NZ', 'en-IN', 'en-ZA'];

/** A time zone of the IANA database (`time.Location`). */
export class TimeZone {
  static readonly UTC = new TimeZone('UTC', undefined);

  readonly #name: string;
  readonly #offsets: Intl.DateTimeFormat | undefined;

  /**
   * Finds a zone by its name, as Go's `time.LoadLocation` does; undefined for an unknown one. `UTC`, the empty name and
   * `Local` are UTC: results must not depend on where this runs. Making a zone takes a thousand times longer than using it.
   */
  static load(name: string): TimeZone | undefined {
    if (name === 'UTC' || name === '' || name === 'Local') {
      return TimeZone.UTC;
    }
    if (!ZONE_NAME.test(name)) {
      return undefined;
    }
    try {
      return new TimeZone(name, new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' }));
    } catch {
      return undefined;
    }
  }

  private constructor(name: string, offsets: Intl.DateTimeFormat | undefined) {
    this.#name = name;
    this.#offsets = offsets;
  }

  /** Seconds east of UTC at a time, given in seconds since 1970. */
  offsetAt(seconds: number): number {
    if (this.#offsets === undefined) {
      return 0;
    }
    // `GMT`, `GMT-08:00` or `GMT-07:52:58`.
    const text = nameOf(this.#offsets, seconds * 1000) ?? 'GMT';
    const [hours = 0, minutes = 0, rest = 0] = text.slice(4).split(':').map(Number);
    return (text.charAt(3) === '-' ? -1 : 1) * (hours * 3600 + minutes * 60 + rest);
  }

  /** The zone's abbreviation at a time, such as `CEST`; its offset, such as `+0530`, when it has none. */
  abbreviationAt(seconds: number): string {
    if (this.#offsets === undefined) {
      return 'UTC';
    }
    const names = ABBREVIATION_LOCALES.map((locale) =>
      nameOf(new Intl.DateTimeFormat(locale, { timeZone: this.#name, timeZoneName: 'short' }), seconds * 1000),
    );
    return names.find((name) => name !== undefined && /^[A-Z]{3,5}$/.test(name)) ?? offsetText(this.offsetAt(seconds));
  }
}

function nameOf(format: Intl.DateTimeFormat, milliseconds: number): string | undefined {
  return format.formatToParts(milliseconds).find((part) => part.type === 'timeZoneName')?.value;
}

/** `+02`, or `+0530` where minutes are not zero. */
function offsetText(offsetSeconds: number): string {
  const minutes = Math.trunc(Math.abs(offsetSeconds) / 60);
  const two = (value: number): string => String(value).padStart(2, '0');
  const rest = minutes % 60 === 0 ? '' : two(minutes % 60);
  return `${offsetSeconds < 0 ? '-' : '+'}${two(Math.trunc(minutes / 60))}${rest}`;
}
