// Manifests in YAML and JSON texts, with their places.
import { type KeyPath, fieldPathText, type JsonObject } from '../../engine/index.ts';
import { isJsonObject, own, type TextPosition } from '../../values/index.ts';
import { parseYaml, YamlSyntaxError } from '../../values/yaml/index.ts';
import { malformedManifests } from '../document.ts';
import { CliError } from '../errors.ts';
import { itemsOf } from '../list-items.ts';
import { type PlaceOf, SourcePlaces } from './source-places.ts';

/** The text of a file, or of standard input. */
export interface SourceText {
  readonly text: string;
  /** The file as users name it, for messages. */
  readonly name: string;
  /** Absolute folder that relative paths in the text are below. */
  readonly folder: string;
}

/** A manifest, and where it stands. */
export interface PlacedManifest {
  readonly object: JsonObject;
  readonly source: SourceText;
  /** Position of a field of the manifest, after the beginning of its text if there is one, or of the manifest itself. */
  readonly positionOf: (path?: KeyPath, beginning?: string) => TextPosition;
  readonly placeOf: PlaceOf;
}

/** @throws CliError with line, column and excerpt when the text is not YAML */
export function parseManifestDocuments({ text, name }: SourceText): readonly unknown[] {
  try {
    return parseYaml(text);
  } catch (error) {
    throw error instanceof YamlSyntaxError ? malformedManifests(text, name, error) : error;
  }
}

/** Whether a document is a Kubernetes object. */
export function isManifest(document: unknown): document is JsonObject {
  return isJsonObject(document) && typeof own(document, 'kind') === 'string';
}

/**
 * The manifests among the documents of a text, with the items of each List.
 * @throws CliError when a document or an item is not a manifest
 */
export function placedManifests(documents: readonly unknown[], source: SourceText): readonly PlacedManifest[] {
  const places = new SourcePlaces(source.text, source.name);
  const placed = (object: JsonObject, document: number, above: KeyPath = []): PlacedManifest => ({
    object,
    source,
    positionOf: (path = [], beginning) => places.positionOf([...above, ...path], beginning, document),
    placeOf: (path, beginning) => places.placeOf([...above, ...path], beginning, document),
  });
  return documents.flatMap((document, index) =>
    itemsOf(document, (path) => `${source.name}:${places.positionOf(path, undefined, index).line}`).flatMap(
      ({ value, path }) => {
        if (value === null || value === undefined) {
          return [];
        }
        if (!isManifest(value)) {
          const { line } = places.positionOf(path, undefined, index);
          throw new CliError(
            `${source.name}:${line}: ${fieldPathText(path) || `document ${index + 1}`} is not a manifest: expected a mapping with apiVersion and kind`,
          );
        }
        return [placed(value, index, path)];
      },
    ),
  );
}

/** A message about a field of a manifest, with its position and the line there. */
export function placedMessage(
  { source, positionOf }: PlacedManifest,
  path: KeyPath,
  message: string,
  beginning?: string,
): string {
  const { line, column, excerpt } = positionOf(path, beginning);
  return `${source.name}:${line}:${column} ${message}\n${excerpt.replaceAll(/^/gm, '  ')}`;
}
