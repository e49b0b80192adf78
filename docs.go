package pt2

//go:generate go run ./internal/gendocs docs/operators.md
