export { WIDGET_SCHEMA } from './widget-schema.ts';
