// Table cells that several kinds share.
import { ageOf, labelSelector } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';

/** The cells of an object, one per column, including those of `-o wide`. `now` is in milliseconds since 1970. */
export type Cells = (object: KubernetesObject, now: number) => readonly unknown[];

/** The fields of a container that printers read. */
export interface PrintedContainer {
  readonly name?: string;
  readonly image?: string;
  readonly restartPolicy?: string;
}

export interface PrintedTemplate {
  readonly spec?: {
    readonly containers?: readonly PrintedContainer[] | null;
    readonly nodeSelector?: Readonly<Record<string, string>>;
  };
}

export interface PrintedCondition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
}

export const nameOf = ({ metadata }: KubernetesObject): string => metadata.name ?? '';

export const age = ({ metadata }: KubernetesObject, now: number): string => ageOf(metadata.creationTimestamp, now);

/** Names and images of containers, for `-o wide`. */
export function containerCells(template: PrintedTemplate | undefined): [names: string, images: string] {
  const containers = template?.spec?.containers ?? [];
  return [containers.map(({ name }) => name).join(','), containers.map(({ image }) => image).join(',')];
}

/** A map of labels as a selector: `app=web,tier=front`. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? '<none>' : pairs.sort().join(',');
}

/** A LabelSelector as text; `empty` for an absent one, and for one that selects everything. */
export function selectorText(selector: unknown, empty = '<none>', invalid = '<error>'): string {
  try {
    const text = selector === undefined || selector === null ? '' : labelSelector(selector).toString();
    return text === '' ? empty : text;
  } catch {
    return invalid;
  }
}

/** The first three entries, and the number of others. */
export function firstThree(list: readonly string[], none: string): string {
  const text = list.slice(0, 3).join(',');
  return list.length > 3 ? `${text} + ${list.length - 3} more...` : text || none;
}

export function hasCondition(conditions: readonly PrintedCondition[] | undefined, type: string): boolean {
  return conditions?.some((condition) => condition.type === type && condition.status === 'True') === true;
}
