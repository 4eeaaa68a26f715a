import type { RecordedRequest } from '../../../audit/preview/index.ts';
import { exactJson, isJsonObject, type JsonObject, objectIn, own } from '../../../values/index.ts';
import { documentName, parseDocuments, readText } from '../../document.ts';
import { CliError } from '../../errors.ts';
import { plainValue } from '../../plain-json.ts';
import { currentReview } from '../../policy/request-document.ts';

/** The requests of files: AdmissionReviews, or their requests, in documents and lists. @throws CliError */
export async function recordedRequests(paths: readonly string[]): Promise<readonly RecordedRequest[]> {
  const all = await Promise.all(paths.map(requestsOfFile));
  return all.flat();
}

async function requestsOfFile(path: string): Promise<readonly RecordedRequest[]> {
  const name = documentName(path);
  const values = parseDocuments(await readText(path), name, 'kubernetes-exact').map(({ value }) =>
    plainValue(value ?? null, name),
  );
  return values.flatMap(itemsOf).map((value, index) => requestOf(value, `${name}: request ${index + 1}`));
}

function itemsOf(value: unknown): readonly unknown[] {
  const items: unknown = isJsonObject(value) ? own(value, 'items') : value;
  return Array.isArray(items) ? items : [value];
}

function requestOf(value: unknown, where: string): RecordedRequest {
  const review = isJsonObject(value) && 'request' in value ? currentReview(value) : { request: value };
  const request = isJsonObject(review['request']) ? review['request'] : undefined;
  if (
    request === undefined ||
    own(request, 'operation') === undefined ||
    Object.keys(objectIn(request, 'resource')).length === 0
  ) {
    throw new CliError(`${where} is no AdmissionReview: expected its request, with operation and resource`, {
      hint: 'Objects are given by --objects.',
    });
  }
  const { response: _, ...sent } = review as JsonObject;
  return { review: Buffer.from(exactJson(sent)), request };
}
