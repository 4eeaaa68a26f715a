// Runs in a child process: `measure.ts LANGUAGE count|time ROUNDS [NAME]`. Writes the name of each call before it is made, and a line
// of JSON for each call whose work exceeds what it charged for.
import { writeSync } from 'node:fs';
import { celFunctions } from './cel-functions.ts';
import { familyOf } from './hostile-values.ts';
import type { Sizes } from './hostile-values.ts';
import { celPrograms, templatePrograms } from './programs.ts';
import { regoBuiltins } from './rego-builtins.ts';
import { Stopwatch } from './stopwatch.ts';
import type { Target } from './target.ts';
import { templateFunctions } from './template-functions.ts';
import { WorkCounter } from './work-counter.ts';

const TARGETS: Readonly<Record<string, () => readonly Target[]>> = {
  cel: celFunctions,
  'cel-programs': celPrograms,
  rego: regoBuiltins,
  templates: templateFunctions,
  'template-programs': templatePrograms,
};

/** How many times as long as it charged for a call may take. */
const FACTOR = 8;
/** How many times as many characters as it charged for, and was given, it may return. */
const CHARS_FACTOR = 1.5;
/** What the call itself takes, without its arguments. Nanoseconds. */
const ALLOWANCE = { count: 20_000, time: 2_000_000 };
/** Small enough to count each block, and as large as a rendering, a request and a guest can have them. */
const COUNTED_SIZES: Readonly<Record<string, Sizes>> = {
  cel: { text: 20_000, items: 500 },
  rego: { text: 8_000, items: 200 },
  templates: { text: 60_000, items: 500 },
  'template-programs': { text: 1000, items: 10 },
  'cel-programs': { text: 2_000, items: 20 },
};
const TIMED_SIZES: Sizes = { text: 200_000, items: 3_000 };
/** Where texts may be this large: what is quadratic then takes far longer than it charged for, though it compares bytes quickly. */
const LARGE_TEXTS: Readonly<Record<string, Sizes>> = {
  rego: { text: 1_000_000, items: 1_000 },
  templates: { text: 1_500_000, items: 1_000 },
};

const [language = '', mode = 'count', rounds = '10', only] = process.argv.slice(2);
const measure = mode === 'count' ? countedWork() : timedWork();
const targets = (TARGETS[language]?.() ?? []).filter(({ name }) => only === undefined || name === only);
const highest = new Map<string, number>();
for (const target of targets) {
  for (const sizes of sizesOf(language)) {
    for (let round = 0; round < Number(rounds); round += 1) {
      judge(target, round, sizes);
    }
  }
}
const shown = [...highest].filter(([, ratio]) => ratio > 1).toSorted(([, a], [, b]) => b - a);
writeSync(1, `${JSON.stringify({ done: targets.length, highest: shown.slice(0, 40) })}\n`);

function sizesOf(of: string): readonly Sizes[] {
  if (mode === 'count') {
    return [COUNTED_SIZES[of] ?? { text: 1, items: 1 }];
  }
  const large = LARGE_TEXTS[of];
  return large === undefined ? [TIMED_SIZES] : [TIMED_SIZES, large];
}

function countedWork(): (call: () => void) => number {
  const counter = new WorkCounter();
  return (call) => counter.operationsOf(call);
}

function timedWork(): (call: () => void) => number {
  const watch = new Stopwatch();
  return (call) => watch.nanosecondsOf(call);
}

function judge(target: Target, round: number, sizes: Sizes): void {
  writeSync(1, `> ${target.name} ${round}\n`);
  const args = target.arguments(familyOf(round, sizes));
  const { ns, chars, returned, work } = leastWork(target, args);
  const ratio = work / (ns + (mode === 'count' ? ALLOWANCE.count : ALLOWANCE.time));
  highest.set(target.name, Math.max(highest.get(target.name) ?? 0, ratio));
  if (ratio > FACTOR || (returned ?? 0) > CHARS_FACTOR * (chars ?? 0) + 1000) {
    writeSync(
      1,
      `${JSON.stringify({ name: target.name, round, work, ns, ratio, chars, returned, args: args.map(shortened) })}\n`,
    );
  }
}

/** Once more where it took long: code is compiled, and memory cleaned, in the time of a call. */
function leastWork(target: Target, args: readonly unknown[]): ReturnType<Target['charge']> & { readonly work: number } {
  const once = (): ReturnType<Target['charge']> & { readonly work: number } => {
    let charge: ReturnType<Target['charge']> = { ns: 0 };
    const work = measure(() => {
      charge = target.charge(args);
    });
    return { ...charge, work };
  };
  let least = once();
  for (let attempt = 0; mode === 'time' && attempt < 2 && least.work > 2 * least.ns + ALLOWANCE.time; attempt += 1) {
    const again = once();
    least = again.work < least.work ? again : least;
  }
  return least;
}

function shortened(value: unknown): string {
  const text =
    JSON.stringify(value, (_, item: unknown) =>
      typeof item === 'bigint'
        ? String(item)
        : typeof item === 'string' && item.length > 40
          ? `${item.slice(0, 30)}… ${item.length}`
          : Array.isArray(item) && item.length > 3
            ? [...item.slice(0, 2), `… ${item.length}`]
            : item,
    ) ?? 'undefined';
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
