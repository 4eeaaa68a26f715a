// Normalises kubectl's output: times, ages, ids, versions and addresses differ between any two clusters.
import type { Outcome } from './kubectl-target.ts';

const RULES: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uid>'],
  [/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '<token>'],
  [/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| [+-]\d{4})?/g, '<time>'],
  [/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/g, '<time>'],
  [/(resourceVersion"?: )"\d+"/g, '$1<version>'],
  [/"resourceVersion":"\d+"/g, '"resourceVersion":<version>'],
  [/https:\/\/127\.0\.0\.1:\d+/g, '<server>'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
  // Before ages: random text may look like one.
  [/\bgenerated-[a-z0-9]{5}\b/g, 'generated-<random>'],
  [/\b\d+(?:ms|[smhd])(?:\d+[smh])?\b/g, '<age>'],
  [/\S*\/(LIVE|MERGED)-\d+\//g, '$1/'],
  [/\S*kubectl-edit-\d+\S*/g, '<file>'],
  [/\S*portcullis-(?:kubectl|cluster)-\w+/g, '<folder>'],
  [/[IEW]\d{4} <?[\d:.]+>?\s+\d+ /g, ''],
  [/(Resource Version:\s+)\d+/g, '$1<version>'],
  [/\b80:3\d{4}\/TCP/g, '80:<port>/TCP'],
  [/\b10\.\d+\.\d+\.\d+\b/g, '<cluster-ip>'],
  // Columns are as wide as their widest cell, which may be an age.
  [/ {2,}/g, '  '],
  [/ +$/gm, ''],
];

/** Normalised text, equal on equal clusters. */
export function normalForm(text: string): string {
  return RULES.reduce((result, [pattern, replacement]) => result.replaceAll(pattern, replacement), text);
}

export function normalOutcome({ stdout, stderr, code }: Outcome): Outcome {
  return { code, stdout: normalForm(stdout), stderr: normalForm(stderr) };
}
