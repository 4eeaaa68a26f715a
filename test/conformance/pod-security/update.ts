// Writes fixtures.json anew: `node update.ts VERSION ORACLE`, where VERSION is one of the Go module
// k8s.io/pod-security-admission (`go` must be there to fetch it), and ORACLE a program that asks that module's own
// evaluator (README.md says what it reads and writes).
import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import type { Files, FixtureLevel, Fixtures, Range, Verdict } from './fixtures.ts';

const MODULE = 'k8s.io/pod-security-admission';
const LEVELS: readonly FixtureLevel[] = ['baseline', 'restricted'];
/** The oracle answers with 64 verdicts for each of some 400 pods: tens of megabytes. */
const MAX_ORACLE_BYTES = 1 << 28;

type OracleAnswer = Record<FixtureLevel, { reasons: string[] | null; details: string[] | null; text: string }[][]>;

/** Numbers values in the order of their first appearance, equal ones alike. */
class Numbering<Value> {
  readonly values: Value[] = [];
  readonly #numbers = new Map<string, number>();

  numberOf(value: Value): number {
    const text = JSON.stringify(value);
    const known = this.#numbers.get(text);
    if (known !== undefined) {
      return known;
    }
    this.#numbers.set(text, this.values.length);
    return this.values.push(value) - 1;
  }
}

/** Consecutive versions with the same number become one range. */
function addTo(ranges: Range[], minor: number, number: number): void {
  const last = ranges.at(-1);
  if (last !== undefined && last[1] === minor - 1 && last[2] === number) {
    last[1] = minor;
  } else {
    ranges.push([minor, minor, number]);
  }
}

function readFiles(folder: string): { files: Files; pods: unknown[]; newest: number; count: number } {
  const pods = new Numbering<unknown>();
  const found = globSync('*/v1.*/{pass,fail}/*.yaml', { cwd: folder })
    .map((path) => {
      const [level = '', version = '', outcome = '', file = ''] = path.split(/[\\/]/);
      return { path, level, minor: Number(version.slice('v1.'.length)), outcome, name: file.replace(/\.yaml$/, '') };
    })
    .toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.minor - b.minor);
  const files: Files = { baseline: { pass: {}, fail: {} }, restricted: { pass: {}, fail: {} } };
  for (const { path, level, minor, outcome, name } of found) {
    if ((level !== 'baseline' && level !== 'restricted') || (outcome !== 'pass' && outcome !== 'fail')) {
      throw new Error(`unexpected place of a fixture: ${path}`);
    }
    const pod = pods.numberOf(load(readFileSync(join(folder, path), 'utf8')));
    addTo((files[level][outcome][name] ??= []), minor, pod);
  }
  return { files, pods: pods.values, newest: Math.max(...found.map(({ minor }) => minor)), count: found.length };
}

function askOracle(oracle: string, newest: number, pods: unknown[]): Pick<Fixtures, 'verdicts' | 'expected'> {
  const input = JSON.stringify({ levels: LEVELS, minors: newest, pods });
  const answer = JSON.parse(
    execFileSync(oracle, { input, encoding: 'utf8', maxBuffer: MAX_ORACLE_BYTES }),
  ) as OracleAnswer;
  const verdicts = new Numbering<Verdict>();
  const rangesOf = (row: OracleAnswer[FixtureLevel][number]): Range[] => {
    const ranges: Range[] = [];
    for (const [minor, { reasons, details, text }] of row.entries()) {
      addTo(ranges, minor, verdicts.numberOf({ reasons: reasons ?? [], details: details ?? [], text }));
    }
    return ranges;
  };
  const expected = { baseline: answer.baseline.map(rangesOf), restricted: answer.restricted.map(rangesOf) };
  return { verdicts: verdicts.values, expected };
}

/** JSON with one line for each element of a list, so that a change shows as one. */
function inLines(list: readonly unknown[]): string {
  return `[\n${list.map((element) => JSON.stringify(element)).join(',\n')}\n]`;
}

const [version, oracle] = process.argv.slice(2);
if (version === undefined || oracle === undefined) {
  throw new Error('expected the version of the Go module and the path of the oracle');
}
const module = JSON.parse(
  execFileSync('go', ['mod', 'download', '-json', `${MODULE}@${version}`], { encoding: 'utf8' }),
) as { Dir: string };
const { files, pods, newest, count } = readFiles(join(module.Dir, 'test', 'testdata'));
const { verdicts, expected } = askOracle(oracle, newest, pods);
writeFileSync(
  new URL('fixtures.json', import.meta.url),
  `{
"source": ${JSON.stringify({ module: MODULE, version, licence: 'Apache-2.0', files: count })},
"newest": ${newest},
"files": ${JSON.stringify(files)},
"pods": ${inLines(pods)},
"verdicts": ${inLines(verdicts)},
"expected": ${JSON.stringify(expected)}
}
`,
);
console.log(`${count} files, ${pods.length} pods, ${verdicts.length} verdicts, newest version v1.${newest}`);
