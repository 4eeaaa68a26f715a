/**
 * required-labels: rejects an object that lacks one of the labels that the settings name.
 *
 * Settings: `labels`, a list of label names; the label must be there with a value that is not empty.
 */
import { Json, Question, accept, invalidSettings, reject, serve, validSettings } from '../assemblyscript/wapc';

function validate(question: Question): Json {
  const request = question.request;
  const metadata = request.get('object').get('metadata');
  const labels = metadata.get('labels');
  const required = question.settings.get('labels');

  const missing: string[] = [];
  for (let i = 0; i < required.items.length; i++) {
    const name = required.items[i].text;
    if (labels.get(name).text == '') {
      missing.push('"' + name + '"');
    }
  }
  if (missing.length == 0) {
    return accept();
  }
  const kind = request.get('kind').get('kind').text;
  return reject(
    kind +
      ' "' +
      objectName(request) +
      '" has no ' +
      (missing.length == 1 ? 'label ' : 'labels ') +
      missing.join(', ') +
      ': add ' +
      (missing.length == 1 ? 'it' : 'them') +
      ' under metadata.labels',
  );
}

/** The name of the object; what a controller asks for by `generateName` has none yet. */
function objectName(request: Json): string {
  const metadata = request.get('object').get('metadata');
  const name = metadata.get('name').text;
  return name != '' ? name : metadata.get('generateName').text;
}

function validateSettings(settings: Json): Json {
  const labels = settings.get('labels');
  if (!labels.isArray() || labels.items.length == 0) {
    return invalidSettings('labels: expected a list of at least one label name, such as ["app.kubernetes.io/name"]');
  }
  for (let i = 0; i < labels.items.length; i++) {
    if (!labels.items[i].isString() || labels.items[i].text == '') {
      return invalidSettings('labels[' + i.toString() + ']: expected a label name, got ' + labels.items[i].toString());
    }
  }
  for (let i = 0; i < settings.names.length; i++) {
    if (settings.names[i] != 'labels') {
      return invalidSettings('unknown setting "' + settings.names[i] + '": expected only labels');
    }
  }
  return validSettings();
}

export function __guest_call(operationLength: i32, payloadLength: i32): i32 {
  return serve(operationLength, payloadLength, validate, validateSettings);
}
