// Warnings about workloads besides those of their pods.
import { textOf, valueAt } from '../../../values/index.ts';
import { dnsLabelProblems } from '../../../names/index.ts';

/** Workloads whose name is the beginning of the names of their pods. */
const NAMES_PODS: ReadonlySet<string> = new Set([
  'apps/v1/Deployment',
  'apps/v1/ReplicaSet',
  'batch/v1/CronJob',
  'batch/v1/Job',
  'v1/ReplicationController',
]);

/** From these on, the list of completed indexes of a Job may become too long for its status. */
const MANY_COMPLETIONS = 1e5;
const MANY_AT_ONCE = 1e4;
const MANY_INDEXES =
  'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail';

/** A name that is no DNS label, of a new workload or pod. @param type `apiVersion/kind` */
export function nameWarnings(type: string, object: unknown): readonly string[] {
  const isPod = type === 'v1/Pod';
  const problems = isPod || NAMES_PODS.has(type) ? dnsLabelProblems(textOf(valueAt(object, 'metadata', 'name'))) : [];
  const what = isPod ? "the Pod's hostname" : 'Pod names and hostnames';
  return problems.length === 0
    ? []
    : [
        `metadata.name: this is used in ${what}, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
      ];
}

export function jobSpecWarnings(spec: unknown, path: string): readonly string[] {
  const isLarge =
    valueAt(spec, 'completionMode') === 'Indexed' &&
    Number(valueAt(spec, 'completions')) > MANY_COMPLETIONS &&
    Number(valueAt(spec, 'parallelism')) > MANY_AT_ONCE;
  return isLarge ? [`${path}: ${MANY_INDEXES}`] : [];
}

export function historyWarnings(spec: unknown): readonly string[] {
  return Number(valueAt(spec, 'revisionHistoryLimit')) < 0
    ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
    : [];
}
