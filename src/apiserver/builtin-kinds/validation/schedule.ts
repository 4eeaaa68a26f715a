// Schedules of CronJobs: five fields, or a descriptor such as `@daily`.

interface FieldRange {
  readonly min: number;
  readonly max: number;
  /** Names of numbers, starting with `min`. */
  readonly names?: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const FIELDS: readonly FieldRange[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];

const DESCRIPTORS = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly']);
const EVERY = '@every ';
const DURATION = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h)(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))*$/;

/** An API server's message for a malformed schedule; undefined for a valid one. */
export function scheduleProblem(schedule: string): string | undefined {
  const text = schedule.replace(/^(?:CRON_)?TZ=\S* */, '').trim();
  if (text.startsWith('@')) {
    return descriptorProblem(text);
  }
  const fields = text.split(/\s+/).filter((field) => field !== '');
  if (fields.length !== FIELDS.length) {
    return `expected exactly ${FIELDS.length} fields, found ${fields.length}: [${fields.join(' ')}]`;
  }
  for (const [index, range] of FIELDS.entries()) {
    for (const part of (fields[index] ?? '').split(',').filter((part) => part !== '')) {
      const problem = rangeProblem(part, range);
      if (problem !== undefined) {
        return problem;
      }
    }
  }
  return undefined;
}

function descriptorProblem(text: string): string | undefined {
  if (DESCRIPTORS.has(text)) {
    return undefined;
  }
  if (text.startsWith(EVERY)) {
    const duration = text.slice(EVERY.length);
    return DURATION.test(duration) || duration === '0'
      ? undefined
      : `failed to parse duration ${text}: time: invalid duration "${duration}"`;
  }
  return `unrecognized descriptor: ${text}`;
}

/** Validates `5`, `*`, `1-5` or `mon`, each also with `/step`. */
function rangeProblem(text: string, range: FieldRange): string | undefined {
  const [span = '', step, ...tooMany] = text.split('/');
  const [low = '', high, ...more] = span.split('-');
  let start: number;
  let end: number;
  if (low === '*' || low === '?') {
    [start, end] = [range.min, range.max];
  } else {
    const from = numberOf(low, range);
    if (typeof from === 'string') {
      return from;
    }
    if (more.length > 0) {
      return `too many hyphens: ${text}`;
    }
    const to = high === undefined ? from : numberOf(high, range);
    if (typeof to === 'string') {
      return to;
    }
    [start, end] = [from, to];
  }
  let every = 1;
  if (step !== undefined) {
    const parsed = numberOf(step, {});
    if (typeof parsed === 'string') {
      return parsed;
    }
    every = parsed;
    end = high === undefined ? range.max : end;
  }
  if (tooMany.length > 0) {
    return `too many slashes: ${text}`;
  }
  return boundsProblem({ start, end, every, text }, range);
}

interface Bounds {
  readonly start: number;
  readonly end: number;
  readonly every: number;
  readonly text: string;
}

function boundsProblem({ start, end, every, text }: Bounds, { min, max }: FieldRange): string | undefined {
  if (start < min) {
    return `beginning of range (${start}) below minimum (${min}): ${text}`;
  }
  if (end > max) {
    return `end of range (${end}) above maximum (${max}): ${text}`;
  }
  if (start > end) {
    return `beginning of range (${start}) beyond end of range (${end}): ${text}`;
  }
  return every === 0 ? `step of range should be a positive number: ${text}` : undefined;
}

/** Parses a number or its name. Returns a message when it is malformed. */
function numberOf(text: string, { min = 0, names = [] }: Partial<FieldRange>): number | string {
  const named = names.indexOf(text.toLowerCase());
  if (named !== -1) {
    return named + min;
  }
  if (!/^[-+]?\d+$/.test(text)) {
    return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
  }
  const number = Number(text);
  return number < 0 ? `negative number (${number}) not allowed: ${text}` : number;
}

/** Whether a time zone is known. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
