// Package validation without the metadata of objects, which would link the
// types of the API.
package validation
