// What the examples of governance run on: a cluster whose Policies a controller applies, embedded or not.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { KubectlResult } from '../cluster/client-command.ts';
import { eventually } from '../cluster/eventually.ts';
import type { LabObjects } from './lab-objects.ts';

export interface ExampleCluster {
  readonly objects: LabObjects;
  /** Runs a kubectl command as an administrator. It must succeed. Returns its output. */
  readonly kubectl: (args: readonly string[], stdin?: string) => Promise<string>;
}

/** A row of `kubectl get policy`: name, remediation action, compliance state and message of a Policy. */
export type PolicyRow = readonly [name: string, action: string, compliant: string, message: string];

/** Time limit of a table. On a machine under load, each kubectl takes a second. Milliseconds. */
const TABLE_TIMEOUT_MS = 60_000;
/** Columns of times, which tests cannot know. */
const TIMES: readonly string[] = ['AGE', 'DURATION'];
const CLUSTER_NAME = 'local-cluster';

/** A kubectl whose commands must succeed. */
export function succeeding(
  run: (args: readonly string[], stdin: string) => Promise<KubectlResult>,
): ExampleCluster['kubectl'] {
  return async (args, stdin = '') => {
    const { code, stdout, stderr } = await run(args, stdin);
    assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
}

/** The text of a manifest in examples/governance. */
export function governanceExample(name: string): string {
  return readFileSync(new URL(`../../examples/governance/${name}.yaml`, import.meta.url), 'utf8');
}

/** Waits until `kubectl get policy -A` shows the Policies of the namespace `policies`, and their copies, as expected. */
export async function showsPolicies(kubectl: ExampleCluster['kubectl'], ...rows: readonly PolicyRow[]): Promise<void> {
  const names = rows.map(([name]) => name);
  await showsTable(
    kubectl,
    ['policy', '-A'],
    [
      ['NAMESPACE', 'NAME', 'REMEDIATION ACTION', 'COMPLIANCE STATE', 'PHASE', 'SERVING', 'COPY ON', 'MESSAGE'],
      ...rows.map(([name, action, state, message]) => [
        CLUSTER_NAME,
        `policies.${name}`,
        action,
        state,
        '',
        '',
        CLUSTER_NAME,
        message,
      ]),
      ...rows.map(([name, action, state, message]) => ['policies', name, action, state, 'Active', '1', '', message]),
    ],
    ([, name = '']) => names.includes(name.replace('policies.', '')),
  );
}

/** Waits until `kubectl get` shows a table, whose first row is its head. Other rows than those of interest are left out. */
export async function showsTable(
  kubectl: ExampleCluster['kubectl'],
  args: readonly string[],
  expected: readonly (readonly string[])[],
  isOfInterest: (row: readonly string[]) => boolean = () => true,
): Promise<void> {
  await eventually(
    async () => {
      const [head, ...rows] = cellsOf(await kubectl(['get', ...args]));
      assert.deepEqual([head, ...rows.filter(isOfInterest)], expected);
    },
    { timeoutMs: TABLE_TIMEOUT_MS, intervalMs: 200 },
  );
}

/** The cells of a table of kubectl, without times. */
function cellsOf(output: string): readonly (readonly string[])[] {
  const lines = output.trimEnd().split('\n');
  const columns = [...(lines[0] ?? '').matchAll(/\S+(?: \S+)*/g)];
  const shown = columns.flatMap(({ 0: name, index }, at) =>
    TIMES.includes(name) ? [] : [{ from: index, to: columns[at + 1]?.index }],
  );
  return lines.map((line) => shown.map(({ from, to }) => line.slice(from, to).trim()));
}
