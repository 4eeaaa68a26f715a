// The lines of fields that messages name.
import { templateInMessage } from '../../../engine/index.ts';
import { type JsonObject, own } from '../../../values/index.ts';
import { fieldPathOf } from '../../field-path.ts';
import { linesOf } from '../../manifest-objects.ts';
import type { Resource, ResourceFile } from './read-resources.ts';
import type { PolicyResult, ResourceReport } from './resource-report.ts';

type FieldPath = readonly (string | number)[];

/** `spec.containers[0].image`; of CEL also `object.spec.replicas` */
const PATH = /[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*|\[\d{1,6}\])+/g;
/** Beginning of a message in which a path is looked for, and paths that are looked up. */
const MAX_MESSAGE = 2_000;
const MAX_PATHS = 20;

/** The first path in a message that is there in the object; after the place of a pod template, paths are below it. */
export function fieldIn(message: string, object: JsonObject): FieldPath | undefined {
  const read = message.slice(0, MAX_MESSAGE);
  const template = templateInMessage(read);
  const inTemplate = template && firstThere(template.text, object, fieldPathOf(template.path));
  return inTemplate ?? firstThere(read, object, []);
}

function firstThere(text: string, object: JsonObject, above: FieldPath): FieldPath | undefined {
  const paths = text.match(PATH) ?? [];
  return paths
    .slice(0, MAX_PATHS)
    .map((path) => [...above, ...fieldPathOf(path.replace(/^object\./, ''))])
    .find((path) => path.length > 1 && isThere(object, path));
}

function isThere(object: JsonObject, path: FieldPath): boolean {
  let value: unknown = object;
  for (const step of path) {
    const inner =
      typeof step === 'number' ? (Array.isArray(value) ? (value[step] as unknown) : undefined) : fieldOf(value, step);
    if (inner === undefined) {
      return false;
    }
    value = inner;
  }
  return true;
}

function fieldOf(value: unknown, field: string): unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? own(value as JsonObject, field)
    : undefined;
}

/** Lines of results that have not passed: that of the field which the message names, or of the object. */
export class FieldLines {
  readonly #lines = new Map<PolicyResult, number>();

  constructor({ resources }: ResourceReport) {
    const wanted = new Map<ResourceFile, { resource: Resource; result: PolicyResult; path: FieldPath }[]>();
    for (const { resource, results } of resources) {
      for (const result of results) {
        const path = isNamed(result) ? fieldIn(result.message ?? '', resource.object) : undefined;
        if (path !== undefined) {
          const ofFile = wanted.get(resource.file) ?? [];
          ofFile.push({ resource, result, path });
          wanted.set(resource.file, ofFile);
        }
      }
    }
    // One file at a time, because its positions take more memory than its text.
    for (const [{ text }, results] of wanted) {
      const lineOf = linesOf(text);
      for (const { resource, result, path } of results) {
        this.#lines.set(result, lineOf(resource.at, path));
      }
    }
  }

  lineOf({ line }: Resource, result: PolicyResult): number {
    return this.#lines.get(result) ?? line;
  }
}

function isNamed({ outcome }: PolicyResult): boolean {
  return outcome === 'fail' || outcome === 'warn';
}
