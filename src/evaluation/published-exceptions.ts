// Exceptions are published to workers as watched objects are, as the text of their terms.
import type { ExceptionTable } from '../engine/index.ts';
import type { ExceptionTerms, ObjectKey } from '../resources/index.ts';
import { parseJson } from '../values/index.ts';
import type { WatchedChange, WatchedObject } from './watched-objects.ts';

const KIND = 'PolicyException';
/** No object has it, so that no parameters of a policy are taken for exceptions. */
const API_VERSION = '';

/** The change by which workers have exactly these exceptions. */
export function allExceptions(exceptions: readonly ExceptionTerms[]): WatchedChange {
  return exceptionsChange(
    true,
    exceptions.map((terms) => publishedException(terms, JSON.stringify(terms))),
  );
}

export function exceptionsChange(isAll: boolean, objects: readonly WatchedObject[]): WatchedChange {
  return { apiVersion: API_VERSION, kind: KIND, isAll, objects };
}

/** @param text JSON of the terms; undefined: there are none any more */
export function publishedException({ namespace = '', name }: ObjectKey, text: string | undefined): WatchedObject {
  return [{ namespace, name }, text];
}

/** Whether a change is one of exceptions. */
export function isOfExceptions(change: WatchedChange): boolean {
  return change.apiVersion === API_VERSION && change.kind === KIND;
}

/** Takes a change over. */
export function applyExceptions(table: ExceptionTable, { isAll, objects }: WatchedChange): void {
  if (isAll) {
    table.clear();
  }
  for (const [{ namespace = '', name }, text] of objects) {
    if (text === undefined) {
      table.delete({ namespace, name });
    } else {
      // Written by the main thread.
      table.set(parseJson(text) as ExceptionTerms & object);
    }
  }
}
