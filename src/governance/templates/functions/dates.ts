import {
  civilOf,
  formatTime,
  isGoObject,
  NS_PER_SECOND,
  parseDuration,
  parseRfc3339,
  parseTime,
  RFC3339_NANO,
  TimeZone,
} from '../../../go/index.ts';
import { failTemplate } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { castInt, textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction, Rendering } from '../rendering/rendering.ts';

/** Years 1 to 9999, which RFC 3339 has. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;
/** Characters of a date for each character of its layout, at most: `Wednesday` for `Mon`, `10` for `1`. */
const MAX_GROWTH = 3;

/** A time in nanoseconds since 1970: a text in RFC 3339, or seconds. */
function timeOf(value: GoValue): bigint {
  if (typeof value === 'string') {
    const time = parseRfc3339(value);
    return time === undefined
      ? failTemplate('a date must be in RFC 3339, or seconds since 1970')
      : BigInt(time.seconds) * NS_PER_SECOND + BigInt(time.nanoseconds);
  }
  return value === undefined || value === null || isGoObject(value)
    ? failTemplate('a date must be in RFC 3339, or seconds since 1970')
    : castInt(value) * NS_PER_SECOND;
}

/** A layout that the caller names. Each of its characters may be an element, which takes the time of a step to read and write. */
function layoutOf(operands: readonly GoValue[], index: number, { meter }: Rendering): string {
  const layout = textOperand(operands, index);
  meter.steps(layout.length);
  meter.chars(layout.length * MAX_GROWTH);
  return layout;
}

function dateText(time: bigint, layout: string, zone = TimeZone.UTC): string {
  const nanosecond = ((time % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  const seconds = Number((time - nanosecond) / NS_PER_SECOND);
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) {
    failTemplate('a date must be in the years 1 to 9999');
  }
  const offsetSeconds = zone.offsetAt(seconds);
  return formatTime(
    {
      ...civilOf(seconds + offsetSeconds, Number(nanosecond)),
      offsetSeconds,
      zoneName: zone.abbreviationAt(seconds),
    },
    layout,
  );
}

const dateInZone: GovernanceFunction = counted(3, 3, (operands, rendering) => {
  // Making a zone takes up to milliseconds.
  rendering.meter.steps(10_000);
  const zone = TimeZone.load(textOperand(operands, 2)) ?? TimeZone.UTC;
  return dateText(timeOf(operands[1]), layoutOf(operands, 0, rendering), zone);
});

const modified: GovernanceFunction = counted(2, 2, (operands) => {
  const duration = parseDuration(textOperand(operands, 0)) ?? failTemplate('dateModify: not a Go duration');
  return dateText(timeOf(operands[1]) + duration, RFC3339_NANO);
});

const toDate: GovernanceFunction = counted(2, 2, (operands, rendering) => {
  const time = parseTime(textOperand(operands, 1), layoutOf(operands, 0, rendering));
  return dateText(time ?? failTemplate('toDate: the text does not have this layout'), RFC3339_NANO);
});

export const DATE_FUNCTIONS: readonly FunctionRow[] = [
  ['now', counted(0, 0, (_, { now }) => now.toISOString())],
  ['date', counted(2, 2, (operands, rendering) => dateText(timeOf(operands[1]), layoutOf(operands, 0, rendering)))],
  ['htmlDate', counted(1, 1, ([value]) => dateText(timeOf(value), '2006-01-02'))],
  ['dateInZone', dateInZone],
  ['date_in_zone', dateInZone],
  ['dateModify', modified],
  ['date_modify', modified],
  ['mustDateModify', modified],
  ['toDate', toDate],
  ['mustToDate', toDate],
  ['unixEpoch', counted(1, 1, ([value]) => String(timeOf(value) / NS_PER_SECOND))],
];
