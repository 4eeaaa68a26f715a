import type { FunctionDeclaration, Library } from '../model/library.ts';
import { BOOL, listOf, mapOf, STRING, struct } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { NOMINAL, scan } from './costs.ts';
import { describe, global, member } from './declare.ts';
import { parseUrl, requestUriProblem } from './url-value.ts';
import type { Url } from './url-value.ts';

/** The type of URLs. */
const URL_TYPE: ReturnType<typeof struct> = struct('kubernetes.URL');

/** A URL is read character by character, several times. */
function parsingWork([text = null]: readonly CelValue[]): number {
  return typeof text === 'string' ? text.length : 0;
}

const SAMPLE = 'https://example.com:8443/a%20b?x=1&x=2';

function accessor(
  name: string,
  id: string,
  summary: string,
  result: string,
  get: (url: Url) => CelResult,
  type: CelType = STRING,
): FunctionDeclaration {
  return describe(name, summary, [`url('${SAMPLE}').${name}()`, result], [member(id, [URL_TYPE], type, get, NOMINAL)]);
}

/** Absolute URLs and paths, as parsed by Go. */
export const URL_LIBRARY: Library = {
  name: 'URLs',
  since: 0,
  types: [URL_TYPE],
  functions: [
    describe(
      'url',
      'Parses an absolute URL or path.',
      ["url('https://example.com/a').getHost()", "'example.com'"],
      [global('string_to_url', [STRING], URL_TYPE, parseUrl, { ...scan({ keepsSize: true }), work: parsingWork })],
    ),
    describe(
      'isURL',
      'Whether a string is an absolute URL or path.',
      ["isURL('example.com')", 'false'],
      [
        global('is_url_string', [STRING], BOOL, (text: string) => requestUriProblem(text) === undefined, {
          work: parsingWork,
        }),
      ],
    ),
    accessor('getScheme', 'url_get_scheme', 'The scheme in lower case.', "'https'", (url) => url.scheme),
    accessor('getHost', 'url_get_host', 'The host with its port.', "'example.com:8443'", (url) => url.host),
    accessor('getHostname', 'url_get_hostname', 'The host without its port.', "'example.com'", (url) => url.hostname),
    accessor('getPort', 'url_get_port', 'The port, or an empty string.', "'8443'", (url) => url.port),
    accessor(
      'getEscapedPath',
      'url_get_escaped_path',
      'The path, percent-encoded.',
      "'/a%20b'",
      (url) => url.escapedPath,
    ),
    accessor(
      'getQuery',
      'url_get_query',
      'The values of the query parameters by name.',
      "{'x': ['1', '2']}",
      (url) => url.query,
      mapOf(STRING, listOf(STRING)),
    ),
  ],
};
