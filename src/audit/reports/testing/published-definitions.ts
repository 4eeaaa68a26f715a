import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import {
  isJsonObject,
  type KubernetesObject,
  REPORT_FORMATS,
  reportDefinitions,
  type ReportApi,
  type Schema,
  valueAt,
} from '../../../resources/index.ts';

/** Structural schemas as they are published; see the README of each folder. */
const FIXTURES = new URL('../../../../test/fixtures/', import.meta.url);

/** The published schema of both kinds of a format. */
function publishedSchema(format: ReportApi): Schema {
  const folder = format === REPORT_FORMATS.wgpolicyk8s ? 'wgpolicyk8s' : 'openreports';
  return load(readFileSync(new URL(`${folder}/report-fields.yaml`, FIXTURES), 'utf8')) as Schema;
}

/** CustomResourceDefinitions with the published schema in place of ours: the API server takes what others' would take. */
export function publishedDefinitions(format: ReportApi): readonly KubernetesObject[] {
  return reportDefinitions(format).map((definition) => {
    const spec = isJsonObject(definition['spec']) ? definition['spec'] : {};
    const [version] = valueAt(spec, 'versions') as readonly object[];
    const schema = { openAPIV3Schema: publishedSchema(format) };
    return { ...definition, spec: { ...spec, versions: [{ ...version, schema }] } };
  });
}
