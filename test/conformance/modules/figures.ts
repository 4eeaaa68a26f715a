// The figures of the corpus, which a run with `--write` keeps, and the tables of docs/modules.md that show them.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../../cli/command.ts';
import { GUESTS } from './guests.ts';
import type { ModuleFigures } from './module-figures.ts';
import { OPTIMIZERS } from './optimizers.ts';

const FIGURES_FILE = join(import.meta.dirname, 'figures.json');
export const FIGURES_PAGE: string = join(ROOT, 'docs', 'modules.md');

/** A build of a guest, and what becomes of it. */
export interface BuildRow {
  readonly guest: string;
  readonly optimizer: string;
  readonly figures: ModuleFigures;
  readonly result: string;
}

/** The builds of a guest as revisions of one policy. */
export interface RolloutRow {
  readonly guest: string;
  /** After each revision. MiB. */
  readonly memory: readonly number[];
  readonly result: string;
}

/** What a run found. */
export interface CorpusFigures {
  readonly builds: readonly BuildRow[];
  readonly rollouts: readonly RolloutRow[];
}

export function readFigures(): CorpusFigures {
  return existsSync(FIGURES_FILE)
    ? (JSON.parse(readFileSync(FIGURES_FILE, 'utf8')) as CorpusFigures)
    : { builds: [], rollouts: [] };
}

/** Keeps what a run found of its guests, beside what is known of the others, and writes the tables of the page. */
export function writeFigures(found: CorpusFigures): void {
  const known = readFigures();
  const builds = [...without(known.builds, found.builds), ...found.builds].toSorted(byGuest);
  const rollouts = [...without(known.rollouts, found.rollouts), ...found.rollouts].toSorted(byGuest);
  writeFileSync(FIGURES_FILE, `${JSON.stringify({ builds, rollouts }, null, 2)}\n`);
  writeFileSync(FIGURES_PAGE, withFigures(readFileSync(FIGURES_PAGE, 'utf8'), { builds, rollouts }));
}

type Row = { readonly guest: string; readonly optimizer?: string };

function without<R extends Row>(rows: readonly R[], newer: readonly R[]): R[] {
  return rows.filter((row) => !newer.some((one) => one.guest === row.guest && one.optimizer === row.optimizer));
}

function byGuest(one: Row, other: Row): number {
  return placeOf(one) - placeOf(other);
}

function placeOf({ guest, optimizer }: Row): number {
  const place = GUESTS.findIndex(({ name }) => name === guest) * OPTIMIZERS.length;
  return (
    place +
    Math.max(
      0,
      OPTIMIZERS.findIndex(({ name }) => name === optimizer),
    )
  );
}

/** The page with these figures in its tables. */
export function withFigures(page: string, { builds, rollouts }: CorpusFigures): string {
  return withTable(withTable(page, buildsTable(builds)), rolloutsTable(rollouts));
}

/** The page with the table in place of the one that has the same first line. */
function withTable(page: string, table: readonly string[]): string {
  const lines = page.split('\n');
  const from = lines.indexOf(table[0] ?? '');
  if (from === -1) {
    throw new Error(`the page has no table that begins with ${table[0]}`);
  }
  const length = lines.slice(from).findIndex((line) => !line.startsWith('|'));
  return lines.toSpliced(from, length, ...table).join('\n');
}

function buildsTable(builds: readonly BuildRow[]): string[] {
  const rows = builds.map(({ guest, optimizer, figures, result }, index) => {
    const { bytes, functions, largestFunction, types, typedTypes, parameters, locals } = figures;
    const counts = [Math.round(bytes / 1000), functions, largestFunction, types, typedTypes, parameters, locals];
    const name = builds[index - 1]?.guest === guest ? '' : `${guest} `;
    return `| ${name}| ${optimizer} | ${counts.map((count) => count.toLocaleString('en')).join(' | ')} | ${result} |`;
  });
  return [
    '| guest | optimizer | KB | functions | largest | types | typed | parameters | locals | result |',
    '|---|---|---|---|---|---|---|---|---|---|',
    ...rows,
  ];
}

function rolloutsTable(rollouts: readonly RolloutRow[]): string[] {
  const rows = rollouts.map(
    ({ guest, memory, result }) => `| ${guest} | ${memory.length} | ${memory.join(', ')} | ${result} |`,
  );
  return ['| guest | revisions | memory after each, MiB | result |', '|---|---|---|---|', ...rows];
}
