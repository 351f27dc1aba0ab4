module example.test/seeded

go 1.25.0
