import { civilOf, quote, TimeZone } from '../../go/index.ts';
import type { CivilTime } from '../../go/index.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CelTimestamp } from './time.ts';

/** Number of cached time zones: creating one takes a thousand times longer than using it, and expressions use few. */
const MAX_ZONES = 64;

const FIXED_OFFSET = /^([+-]?\d{1,4}):([+-]?\d{1,4})$/;

/** Time zones of expressions: IANA names, and offsets such as `-08:00`. */
export class TimeZones {
  readonly #zones = new Map<string, TimeZone | undefined>();

  /** The local time of a timestamp in a zone; a failure if the zone is unknown. */
  localTime(timestamp: CelTimestamp, zone: string): CivilTime | EvaluationFailure {
    const offset = this.#offsetSeconds(timestamp, zone);
    return typeof offset === 'number' ? civilOf(timestamp.seconds + offset, timestamp.nanos) : offset;
  }

  #offsetSeconds(timestamp: CelTimestamp, name: string): number | EvaluationFailure {
    if (name.includes(':')) {
      return fixedOffset(name);
    }
    return this.#zone(name)?.offsetAt(timestamp.seconds) ?? new EvaluationFailure(`unknown time zone ${name}`);
  }

  #zone(name: string): TimeZone | undefined {
    if (!this.#zones.has(name)) {
      if (this.#zones.size >= MAX_ZONES) {
        this.#zones.clear();
      }
      this.#zones.set(name, TimeZone.load(name));
    }
    return this.#zones.get(name);
  }
}

function fixedOffset(zone: string): number | EvaluationFailure {
  const match = FIXED_OFFSET.exec(zone);
  if (match === null) {
    const part = zone.slice(0, zone.indexOf(':'));
    const invalidPart = /^[+-]?\d+$/.test(part) ? zone.slice(zone.indexOf(':') + 1) : part;
    return new EvaluationFailure(`strconv.Atoi: parsing ${quote(invalidPart)}: invalid syntax`);
  }
  const hours = Number(match[1]);
  const minutes = Number(match[2]);
  return (zone.startsWith('-') ? hours * 60 - minutes : hours * 60 + minutes) * 60;
}
