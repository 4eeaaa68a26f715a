// Builds the corpus of modules, and prints what each contains, and what the product makes of it: the tables of docs/modules.md.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { annotated, failedCases, refusalOf } from './command-line.ts';
import { type BuildRow, type RolloutRow, writeFigures } from './figures.ts';
import { type CorpusGuest, GUESTS } from './guests.ts';
import { moduleFigures } from './module-figures.ts';
import { type Optimizer, optimized, OPTIMIZERS } from './optimizers.ts';
import { rollOut } from './policy-server.ts';

interface Build {
  readonly guest: CorpusGuest;
  readonly optimizer: Optimizer;
  readonly file: string;
  /** Why it is not served; undefined when all of the guest's cases have the right verdict. */
  readonly problem?: string;
  /** V8 refuses the module as well. */
  readonly isInvalid: boolean;
}

const FAILED = 'failed';
const COLUMNS = ['module', 'optimizer', 'KB', 'functions', 'largest', 'types', 'typed', 'params', 'results', 'locals'];
const WIDTHS = [16, 10, 9, 11, 9, 7, 7, 8, 9, 8];
/** Builds of Rust beside which the large guest is served. */
const NEIGHBOURS = 3;

/**
 * Prints the table for the guests and optimizers that are named. Default: all. `--write` keeps it in docs/modules.md.
 * @returns the exit code
 */
export async function printModules(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      optimizer: { type: 'string', multiple: true, default: [] },
      write: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const guests = named('guest', GUESTS, positionals);
  const optimizers = named('optimizer', OPTIMIZERS, values.optimizer);
  printRow([...COLUMNS, 'result']);
  const failures: string[] = [];
  for (const guest of guests) {
    const builds = await judgedBuilds(guest, optimizers.filter(isFor(guest)));
    const rollouts = await judgedRollouts(guest, builds);
    failures.push(...failuresOf(builds, rollouts));
    if (values.write) {
      writeFigures({ builds: builds.map(rowOf), rollouts });
    }
  }
  for (const failure of failures) {
    console.log(`failed: ${failure}`);
  }
  return failures.length === 0 ? 0 : 1;
}

function failuresOf(builds: readonly Build[], rollouts: readonly RolloutRow[]): string[] {
  return [
    ...builds.filter(isFailure).map(({ guest, optimizer, problem }) => `${guest.name} ${optimizer.name}: ${problem}`),
    ...rollouts.filter(({ result }) => result.startsWith(FAILED)).map(({ guest, result }) => `${guest} ${result}`),
  ];
}

function isFor({ optimizers }: CorpusGuest): (optimizer: Optimizer) => boolean {
  return ({ name }) => optimizers?.includes(name) ?? true;
}

/** Those with the names; all when there are no names. */
function named<Named extends { readonly name: string }>(
  what: string,
  all: readonly Named[],
  names: readonly string[],
): readonly Named[] {
  const unknown = names.find((name) => !all.some((one) => one.name === name));
  if (unknown !== undefined) {
    throw new Error(`no ${what} is called ${unknown}; there are ${all.map(({ name }) => name).join(', ')}`);
  }
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

/** What V8 accepts is served. */
function isFailure({ problem, isInvalid }: Build): boolean {
  return problem !== undefined && !isInvalid;
}

async function judgedBuilds(guest: CorpusGuest, optimizers: readonly Optimizer[]): Promise<Build[]> {
  const builds: Build[] = [];
  for await (const { optimizer, file } of buildsOf(guest, optimizers)) {
    const isInvalid = !WebAssembly.validate(readFileSync(file));
    const problem = (await refusalOf(file)) ?? (await failedCases(guest, file));
    const build = { guest, optimizer, file, isInvalid, ...(problem === undefined ? {} : { problem }) };
    printBuild(build);
    builds.push(build);
  }
  return builds;
}

/** The guest as each optimizer writes it, with its metadata. None when its compiler is missing, which is printed. */
async function* buildsOf(
  guest: CorpusGuest,
  optimizers: readonly Optimizer[],
): AsyncGenerator<Pick<Build, 'optimizer' | 'file'>> {
  const compiled = await guest.compiler(guest.folder);
  if ('missing' in compiled) {
    console.log(`${guest.name.padEnd(WIDTHS[0] ?? 0)}not built: ${compiled.missing}`);
    return;
  }
  const digest = createHash('sha256').update(readFileSync(compiled.file)).digest('hex');
  for (const optimizer of optimizers) {
    yield { optimizer, file: await annotated(guest, await optimized(compiled.file, digest, optimizer)) };
  }
}

function rowOf({ guest, optimizer, file, problem, isInvalid }: Build): BuildRow {
  const refused = isInvalid ? 'refused, as by V8' : `refused: ${lastLine(problem ?? '')}`;
  return {
    guest: guest.name,
    optimizer: optimizer.name,
    figures: moduleFigures(readFileSync(file)),
    result: problem === undefined ? 'decides' : refused,
  };
}

function printBuild(build: Build): void {
  const { guest, optimizer, figures, result } = rowOf(build);
  const { bytes, functions, largestFunction, types, typedTypes, parameters, results, locals } = figures;
  const counts = [Math.round(bytes / 1000), functions, largestFunction, types, typedTypes, parameters, results, locals];
  printRow([guest, optimizer, ...counts.map(String), result]);
}

/** What became of the builds that decide, as revisions of one policy. None when there are none. */
async function judgedRollouts(guest: CorpusGuest, builds: readonly Build[]): Promise<RolloutRow[]> {
  const served = builds.filter(({ problem }) => problem === undefined).map(({ file }) => file);
  if (served.length === 0) {
    return [];
  }
  const { memory, failure } = await rollOut(guest, served, guest.isLarge === true ? await neighbours() : []);
  const result = failure === undefined ? 'updated and rolled back' : `${FAILED}: ${failure}`;
  console.log(`${guest.name}: memory after each revision ${memory.join(', ')} MiB, ${result}`);
  return [{ guest: guest.name, memory, result }];
}

/** Builds of the Rust guest, each a policy of its own. */
async function neighbours(): Promise<(readonly [CorpusGuest, string])[]> {
  const rust = GUESTS.find(({ name }) => name === 'rust');
  if (rust === undefined) {
    return [];
  }
  const policies: (readonly [CorpusGuest, string])[] = [];
  for await (const { file } of buildsOf(rust, OPTIMIZERS.slice(0, NEIGHBOURS))) {
    policies.push([rust, file]);
  }
  return policies;
}

/** The line of an error that says what is wrong. */
function lastLine(text: string): string {
  return text.split('\n').at(-1)?.trim() ?? '';
}

function printRow(cells: readonly string[]): void {
  console.log(
    cells
      .map((cell, index) => (index < 2 ? cell.padEnd(WIDTHS[index] ?? 0) : cell.padStart(WIDTHS[index] ?? 0)))
      .join('')
      .replace(/(?<=^.{94})\s*/, '  '),
  );
}
