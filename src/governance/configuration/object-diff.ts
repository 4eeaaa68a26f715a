// Differences between a live object and what a policy would write, as texts for `status.relatedObjects`.
import { isDeepStrictEqual } from 'node:util';
import { structuredPatch } from 'diff';
import type { StructuredPatchHunk } from 'diff';
import { yamlText } from '../../go/index.ts';
import { LAST_APPLIED_ANNOTATION, keyText } from '../../resources/index.ts';
import type { KubernetesObject, ObjectMeta } from '../../resources/index.ts';
import { asJson } from '../../values/index.ts';
import type { RecordDiff } from './object-template.ts';

/** Unchanged lines around each change. */
const CONTEXT_LINES = 5;
/** Lines of a difference in a status without its header, that of OCM. */
const MAX_LINES = 50;
/** The names of both objects, and the first range. */
const HEADER_LINES = 3;
/** Larger differences are not computed: the time grows with the square of the changed lines. */
const MAX_CHANGED_LINES = 1_000;

const REDACTED =
  '# The difference is redacted because it contains sensitive data. To override, the ' +
  'spec["object-templates"][].recordDiff field must be set to "InStatus" for the difference to be recorded in the ' +
  'policy status. Consider existing access to the ConfigurationPolicy objects and the etcd encryption configuration ' +
  'before you proceed with an override.';
const TOO_LARGE = `# The objects differ in more than ${MAX_CHANGED_LINES} lines.`;

/** The kinds whose objects may contain secrets, each as group and kind. */
const SENSITIVE_KINDS: ReadonlySet<string> = new Set([
  '/ConfigMap',
  '/Secret',
  'oauth.openshift.io/OAuthAccessToken',
  'oauth.openshift.io/OAuthAuthorizeToken',
  // OCM's name of the kind, which does not exist.
  'oauth.openshift.io/OAuthAuthorizeTokens',
  'route.openshift.io/Route',
]);

/** Where a difference is recorded; `Censored` says in the status that there is one, `Full` records all lines of it. */
export type DiffRecord = RecordDiff | 'Censored' | 'Full';

/** Where differences are recorded: as the template says, or by default in the status, unless they may contain secrets. */
export function diffRecord(
  recordDiff: RecordDiff | undefined,
  object: { readonly apiVersion: string; readonly kind: string },
  usesSensitiveFunctions: boolean,
): DiffRecord {
  const group = object.apiVersion.includes('/') ? object.apiVersion.replace(/\/.*$/, '') : '';
  const isSensitive = usesSensitiveFunctions || SENSITIVE_KINDS.has(`${group}/${object.kind}`);
  return recordDiff ?? (isSensitive ? 'Censored' : 'InStatus');
}

/** The text for the status; empty if there is none. */
export function statusDiff(record: DiffRecord, live: KubernetesObject, updated: KubernetesObject): string {
  switch (record) {
    case 'InStatus':
      return objectDiff(live, updated);
    case 'Full':
      return objectDiff(live, updated, { isFull: true });
    case 'Censored':
      return REDACTED;
    case 'Log':
    case 'None':
      return '';
    default:
      return record satisfies never;
  }
}

export interface DiffOptions {
  /** Whether long differences are shown in full. Default: false. */
  readonly isFull?: boolean;
}

/** The unified difference of two objects; empty if there is none. */
export function objectDiff(live: KubernetesObject, updated: KubernetesObject, { isFull }: DiffOptions = {}): string {
  const [before, after] = [yamlOf(live), yamlOf(updated)];
  if (before === after) {
    return '';
  }
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_CHANGED_LINES };
  const patch = structuredPatch('', '', before, after, '', '', options);
  if (patch === undefined) {
    return TOO_LARGE;
  }
  const lines = [
    `--- ${title(live)} : existing`,
    `+++ ${title(updated)} : updated`,
    ...patch.hunks.flatMap(hunkLines),
    // After the last line break.
    '',
  ];
  return isFull === true ? lines.join('\n') : truncated(lines);
}

/** Whether the answer to a dry run is the live object: then a difference was only apparent. */
export function isUnchanged(live: KubernetesObject, answer: KubernetesObject): boolean {
  return isDeepStrictEqual(withoutNoise(live), withoutNoise(answer));
}

/** An object without the bookkeeping of writes: managed fields, generation, the annotation of `kubectl apply`. */
function withoutNoise(object: KubernetesObject): KubernetesObject {
  const { managedFields: _managedFields, generation: _generation, annotations = {}, ...metadata } = object.metadata;
  const { [LAST_APPLIED_ANNOTATION]: _lastApplied, ...others } = annotations;
  const kept: ObjectMeta = Object.keys(others).length === 0 ? metadata : { ...metadata, annotations: others };
  return { ...object, metadata: kept };
}

/** The object as YAML, and one more empty line, which OCM's differences have at the end. */
function yamlOf(object: KubernetesObject): string {
  return `${yamlText(asJson(withoutNoise(object)))}\n`;
}

function title({ metadata: { name = '', namespace } }: KubernetesObject): string {
  return keyText(namespace === undefined ? { name } : { namespace, name });
}

function hunkLines({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): readonly string[] {
  return [`@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`, ...lines];
}

function range(start: number, count: number): string {
  return count === 1 ? `${start}` : `${start},${count}`;
}

function truncated(lines: readonly string[]): string {
  const most = MAX_LINES + HEADER_LINES;
  // OCM counts the header, and the line break at the end as a line.
  return lines.length - 1 <= most
    ? lines.join('\n')
    : [`# Truncated: showing ${MAX_LINES}/${lines.length} diff lines:`, ...lines.slice(0, most)].join('\n');
}
